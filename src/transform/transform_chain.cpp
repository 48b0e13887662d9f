#include "transform/transform_chain.hpp"

#include <kith/error.hpp>
#include <kith/matrix_buffer.hpp>
#include <kith/pairwise_distances.hpp>

#include "core/float_mode.hpp"
#include "core/host_array.hpp"
#include "core/memory_budget.hpp"
#include "core/reused_memory.hpp"
#include "core/typed_row.hpp"
#include "core/within_limits.hpp"
#include "kernels/dense/dense.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "rows/row_blocks.hpp"
#include "rows/stored_row.hpp"
#include "transform/transform_cuda.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

namespace kith {
namespace {

using Kind = TransformParts::Kind;

constexpr int64_t kPieceValues = 1 << 20;  // of rows between steps
constexpr int64_t kValuesATask = 1 << 16;

// Runs body(row) for every row, some rows a task.
template <typename Body>
void for_each_row(int64_t rows, int64_t cols, const Resources& resources, const Body& body) {
  const auto run_some = [&](int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) body(i);
  };
  for_row_blocks("transform", rows, resources, run_some,
                 std::max<int64_t>(1, kValuesATask / std::max<int64_t>(cols, 1)));
}

void shift_rows(const MatrixView& rows, const float* offset, float sign, const MutableMatrixView& out,
                const Resources& resources) {
  for_each_row(rows.rows(), rows.cols(), resources, [&](int64_t i) {
    float* const to = typed_row<float>(out, i);
    widen_row(rows, i, to);
    for (int64_t c = 0; c < rows.cols(); ++c) to[c] += sign * offset[c];
  });
}

void scale_rows(const MatrixView& rows, const MutableMatrixView& out, const Resources& resources) {
  for_each_row(rows.rows(), rows.cols(), resources, [&](int64_t i) {
    double inverse = 0;
    canonical_inverse_norms_cpu(rows.slice(i, 1), &inverse);
    float* const to = typed_row<float>(out, i);
    widen_row(rows, i, to);
    for (int64_t c = 0; c < rows.cols(); ++c) to[c] = static_cast<float>(static_cast<double>(to[c]) * inverse);
  });
}

// Changes the number of columns to that of `out`: appends zeros, or drops the last columns.
void resize_rows(const MatrixView& rows, const MutableMatrixView& out, const Resources& resources) {
  const int64_t kept = std::min(rows.cols(), out.cols());
  const MatrixView some(rows.data(), rows.dtype(), {rows.rows(), kept, rows.row_stride()}, rows.space());
  for_each_row(rows.rows(), out.cols(), resources, [&](int64_t i) {
    widen_row(some, i, typed_row<float>(out, i));
    std::fill(typed_row<float>(out, i) + kept, typed_row<float>(out, i) + out.cols(), 0.0f);
  });
}

// A linear step, or its inverse by the transpose. An offset is one more column, or is subtracted first.
class LinearStep {
 public:
  LinearStep(const TransformParts& parts, bool forward, int64_t rows, const Resources& resources)
      : parts_(parts),
        forward_(forward),
        cols_(forward ? parts.in + (parts.offset.empty() ? 0 : 1) : parts.out),
        out_(forward ? parts.out : parts.in),
        step_(parts.offset.empty() ? rows : std::min(rows, std::max<int64_t>(1, (1 << 20) / cols_))),
        matrix_(as_it_is() ? 0 : out_ * cols_, "a transform", resources),
        some_(parts.offset.empty() ? 0 : step_ * cols_, "rows of a transform", resources) {}

  // With what the product takes beside, which a GPU without room leaves to the CPU where that is Kith's choice.
  static Footprint footprint(const TransformParts& parts, bool forward, const RowsInfo& rows,
                             const Resources& resources) {
    const bool on_gpu = resources.device().kind == DeviceKind::cuda;
    return footprint_of_call(on_gpu ? resources : resources.with_device(Device::cpu()), [&](const Resources& counting) {
      const LinearStep step(parts, forward, std::max<int64_t>(rows.rows, 1), counting);
      std::byte* const nothing = counted_only_memory();
      const DType dtype = parts.offset.empty() ? rows.dtype : DType::f32;
      multiply_rows({nothing, dtype, {step.step_, step.cols_, step.cols_}},
                    {nothing, DType::f32, {step.out_, step.cols_, step.cols_}},
                    {nothing, DType::f32, {step.step_, step.out_, step.out_}}, counting);
    });
  }

  void run(const MatrixView& rows, const MutableMatrixView& out, const Resources& resources) const {
    fill_matrix();
    const MatrixView matrix(as_it_is() ? parts_.matrix.data() : matrix_.data(), out_, cols_);
    if (parts_.offset.empty()) return multiply_rows(rows, matrix, out, resources);
    for (int64_t first = 0; first < rows.rows(); first += step_) {
      const MatrixView given = rows.slice(first, std::min(step_, rows.rows() - first));
      const MutableMatrixView some(some_.data(), given.rows(), cols_);
      if (forward_) {
        for_each_row(given.rows(), cols_, resources, [&](int64_t i) {
          widen_row(given, i, typed_row<float>(some, i));
          typed_row<float>(some, i)[parts_.in] = 1.0f;
        });
      } else {
        shift_rows(given, parts_.offset.data(), -1.0f, some, resources);
      }
      multiply_rows(some, matrix, out.slice(first, given.rows()), resources);
    }
  }

 private:
  bool as_it_is() const { return forward_ && parts_.offset.empty(); }
  static void multiply_rows(const MatrixView& rows, const MatrixView& matrix, const MutableMatrixView& out,
                            const Resources& resources) {
    pairwise_distances(rows, matrix, out, {Metric::inner_product, false}, resources);
  }
  void fill_matrix() const {
    for (int64_t j = 0; j < parts_.out && !as_it_is(); ++j) {
      const float* const row = parts_.matrix.data() + j * parts_.in;
      if (forward_) {
        std::copy_n(row, parts_.in, matrix_.data() + j * cols_);
        matrix_[j * cols_ + parts_.in] = parts_.offset[static_cast<size_t>(j)];
      } else {
        for (int64_t i = 0; i < parts_.in; ++i) matrix_[i * cols_ + j] = row[i];
      }
    }
  }

  const TransformParts& parts_;
  const bool forward_;
  const int64_t cols_;  // that are multiplied
  const int64_t out_;
  const int64_t step_;       // rows at a time
  HostArray<float> matrix_;  // out x cols, where the step's own does not serve
  HostArray<float> some_;
};

// One step on some rows, forward or back.
struct PieceStep : TransformRun {
  int64_t in() const { return forward ? parts->in : parts->out; }
  int64_t out() const { return forward ? parts->out : parts->in; }

  void run(const MatrixView& rows, const MutableMatrixView& to, const Resources& resources) const {
    switch (parts->kind) {
      case Kind::linear: return LinearStep(*parts, forward, rows.rows(), resources).run(rows, to, resources);
      case Kind::shift: return shift_rows(rows, parts->offset.data(), forward ? 1.0f : -1.0f, to, resources);
      case Kind::unit_length: return forward ? scale_rows(rows, to, resources) : resize_rows(rows, to, resources);
      case Kind::padding: return resize_rows(rows, to, resources);
    }
  }
  Footprint footprint(const RowsInfo& rows, const Resources& resources) const {
    return parts->kind == Kind::linear ? LinearStep::footprint(*parts, forward, rows, resources) : Footprint();
  }
};

// All steps of a chain, or its inverse: pieces of rows pass through them, in two alternating buffers.
class PieceSteps {
 public:
  PieceSteps(std::span<const TransformParts* const> all, bool forward) {
    steps_.reserve(all.size());
    for (const TransformParts* parts : all) steps_.push_back({{parts, forward}});
    if (!forward) std::reverse(steps_.begin(), steps_.end());
    for (const PieceStep& step : steps_) widest_ = std::max({widest_, step.in(), step.out()});
    buffers_ = std::min<int64_t>(static_cast<int64_t>(steps_.size()) - 1, 2);
  }

  // With pieces of a row.
  Footprint footprint(const RowsInfo& rows, const Resources& resources) const {
    return working(rows, resources).beside(array_footprint<float>(buffers_, widest_));
  }

  void run(const MatrixView& rows, const MutableMatrixView& out, const Resources& resources) const {
    check(rows, out);
    if (const std::optional<int> device = device_of_rows(rows, out)) {
      return transform_cuda({steps_.begin(), steps_.end()}, rows, out, *device, resources);
    }
    if (counts_only(resources)) return count_work(footprint(RowsInfo(rows), resources), resources);
    const Resources quiet = resources.with_progress({});
    const int64_t piece = piece_of(RowsInfo(rows), quiet);
    MatrixBuffer between[2];
    for (int64_t b = 0; b < buffers_; ++b) {
      between[b] = MatrixBuffer(DType::f32, piece, widest_, "rows between transforms", resources);
    }
    ProgressMeter meter("transform", rows.rows(), resources);
    for (int64_t first = 0; first < rows.rows(); first += piece) {
      const int64_t count = std::min(piece, rows.rows() - first);
      MatrixView from = rows.slice(first, count);
      for (size_t s = 0; s < steps_.size(); ++s) {
        const bool last = s + 1 == steps_.size();
        const int64_t cols = steps_[s].out();
        const MutableMatrixView to =
            last ? out.slice(first, count)
                 : MutableMatrixView(between[s % 2].mutable_view().data(), DType::f32, {count, cols, cols});
        steps_[s].run(from, to, quiet);
        from = to;
      }
      meter.add(count);
      meter.poll();
    }
    meter.finish();
  }

 private:
  void check(const MatrixView& rows, const MutableMatrixView& out) const {
    const int64_t cols = steps_.front().in();
    const int64_t out_cols = steps_.back().out();
    if (rows.cols() != cols) {
      throw InvalidArgument(fmt::format("the rows have {} columns; the transform takes {}", rows.cols(), cols));
    }
    if (out.dtype() != DType::f32 || out.rows() != rows.rows() || out.cols() != out_cols) {
      throw InvalidArgument(fmt::format("the output is {} {} x {}; transformed rows are f32, {} x {}",
                                        name_of(out.dtype()), out.rows(), out.cols(), rows.rows(), out_cols));
    }
  }

  int64_t most_rows(int64_t rows) const {
    return std::max<int64_t>(1, buffers_ == 0 ? rows : std::min(rows, kPieceValues / widest_));
  }
  // What the steps take, one after the other.
  Footprint working(const RowsInfo& rows, const Resources& resources) const {
    Footprint most;
    DType dtype = rows.dtype;
    for (const PieceStep& step : steps_) {
      most = most.then(step.footprint({most_rows(rows.rows), step.in(), dtype}, resources));
      dtype = DType::f32;
    }
    return most;
  }
  // As many rows as the limit has room for beside the steps.
  int64_t piece_of(const RowsInfo& rows, const Resources& resources) const {
    const int64_t most = most_rows(rows.rows);
    if (buffers_ == 0 || !counts_memory(resources)) return most;
    const int64_t room = resources.host_memory()->available() - working(rows, resources).host;
    return std::clamp<int64_t>(room / array_bytes<float>(buffers_ * widest_), 1, most);
  }

  ReusedVector<PieceStep> steps_;
  int64_t widest_ = 1;
  int64_t buffers_ = 0;
};

ReusedVector<const TransformParts*> parts_of(const std::vector<std::shared_ptr<const Transform>>& steps) {
  ReusedVector<const TransformParts*> parts;
  parts.reserve(steps.size() + 1);
  for (const auto& step : steps) parts.push_back(&step->parts());
  return parts;
}

// Without steps, rows are treated as padded to the columns that they have.
void run_steps(const std::vector<std::shared_ptr<const Transform>>& steps, bool forward, const MatrixView& rows,
               const MutableMatrixView& out, const Resources& resources) {
  const TransformParts same{Kind::padding, "", rows.cols(), rows.cols(), {}, {}};
  ReusedVector<const TransformParts*> parts = parts_of(steps);
  if (parts.empty()) parts.push_back(&same);
  PieceSteps(parts, forward).run(rows, out, resources);
}

// Whether the transpose is an inverse: rows are orthonormal, or columns if there are more rows than columns.
bool is_orthonormal(const TransformParts& parts, const Resources& resources) {
  constexpr double kTolerance = 1e-4;
  const DenseView<const float> rows{parts.matrix.data(), parts.out, parts.in, parts.in, 1};
  const DenseView<const float> some = parts.out <= parts.in ? rows : rows.transposed();
  const Dense products(some.rows, some.rows, "a check of a transform", resources);
  multiply(some, some.transposed(), products.view(), {.symmetric = true}, resources);
  for (int64_t i = 0; i < some.rows; ++i) {
    for (int64_t j = 0; j < some.rows; ++j) {
      if (!(std::abs(products(i, j) - (i == j ? 1.0 : 0.0)) <= kTolerance)) return false;
    }
  }
  return true;
}

void check_parts(const TransformParts& parts) {
  const auto fail = [&](const std::string& why) {
    throw InvalidArgument(
        fmt::format("the transform \"{}\" of {} to {} columns {}", parts.name, parts.in, parts.out, why));
  };
  constexpr int64_t kMostCols = int64_t{1} << 31;
  if (parts.in < 1 || parts.out < 1 || parts.in >= kMostCols || parts.out >= kMostCols) {
    fail("makes no sense: there must be at least one, and fewer than 2^31");
  }
  const bool linear = parts.kind == Kind::linear;
  const int64_t offset = parts.kind == Kind::shift || (linear && !parts.offset.empty()) ? parts.out : 0;
  const auto matrix = static_cast<int64_t>(parts.matrix.size());
  if (linear ? matrix % parts.in != 0 || matrix / parts.in != parts.out : matrix != 0) {
    fail(fmt::format("has a matrix of {} values", matrix));
  }
  if (static_cast<int64_t>(parts.offset.size()) != offset) {
    fail(fmt::format("has an offset of {} values; it must be {}", parts.offset.size(), offset));
  }
  if ((parts.kind == Kind::shift || parts.kind == Kind::unit_length) && parts.in != parts.out) {
    fail("keeps the columns: both numbers must be the same");
  }
  if (parts.kind == Kind::padding && parts.out < parts.in) fail("can only add columns; use PCA to have fewer");
}

}  // namespace

std::optional<int> device_of_rows(const MatrixView& rows, const MatrixView& out) {
  const bool from = !rows.space().host_readable();
  const bool to = !out.space().host_readable();
  if (from && to && rows.space().device != out.space().device) {
    throw InvalidArgument(fmt::format("the rows lie on cuda:{} and the output on cuda:{}; both must be on one device",
                                      rows.space().device, out.space().device));
  }
  if (!from && !to) return std::nullopt;
  return from ? rows.space().device : out.space().device;
}

Transform::Transform(TransformParts parts, const Resources& resources) : parts_(std::move(parts)) {
  check_parts(parts_);
  counted_ = CountedBytes(bytes(), "a transform", resources);
  if (parts_.kind == Kind::linear) orthonormal_ = is_orthonormal(parts_, resources.with_progress({}));
}

Footprint Transform::held(Kind kind, int64_t in, int64_t out) {
  return array_footprint<float>(kind == Kind::linear ? in * out : kind == Kind::shift ? out : 0);
}

Footprint Transform::footprint(Kind kind, int64_t in, int64_t out, const Resources& resources) {
  if (kind != Kind::linear) return held(kind, in, out);
  const int64_t least = std::min(in, out);
  return held(kind, in, out)
      .beside(array_footprint<double>(least, least))
      .beside(product_footprint<double>(least, least, std::max(in, out), resources));
}

int64_t Transform::bytes() const {
  return array_bytes<float>(static_cast<int64_t>(parts_.matrix.size() + parts_.offset.size()));
}

void Transform::check_reversible() const {
  if (!orthonormal_) {
    throw Unsupported(fmt::format("the transform \"{}\" cannot be undone: its matrix is not orthonormal", parts_.name));
  }
}

TransformChain::TransformChain(std::vector<std::shared_ptr<const Transform>> steps) : steps_(std::move(steps)) {
  for (size_t s = 1; s < steps_.size(); ++s) {
    if (steps_[s]->in() == steps_[s - 1]->out()) continue;
    throw InvalidArgument(fmt::format("the transform \"{}\" makes {} columns, and \"{}\" behind it takes {}",
                                      steps_[s - 1]->parts().name, steps_[s - 1]->out(), steps_[s]->parts().name,
                                      steps_[s]->in()));
  }
}

TransformChain TransformChain::from_parts(std::vector<TransformParts> parts, const Resources& resources) {
  std::vector<std::shared_ptr<const Transform>> steps;
  steps.reserve(parts.size());
  for (TransformParts& part : parts) steps.push_back(std::make_shared<const Transform>(std::move(part), resources));
  return TransformChain(std::move(steps));
}

std::vector<TransformParts> TransformChain::parts() const {
  std::vector<TransformParts> parts;
  parts.reserve(steps_.size());
  for (const auto& step : steps_) parts.push_back(step->parts());
  return parts;
}

int64_t TransformChain::in() const {
  if (empty()) throw InvalidState("a chain without transforms has no columns of its own");
  return steps_.front()->in();
}

int64_t TransformChain::out() const {
  if (empty()) throw InvalidState("a chain without transforms has no columns of its own");
  return steps_.back()->out();
}

int64_t TransformChain::widest() const {
  int64_t widest = 0;
  for (const auto& step : steps_) widest = std::max({widest, step->in(), step->out()});
  return widest;
}

bool TransformChain::reversible() const {
  return std::all_of(steps_.begin(), steps_.end(), [](const auto& step) { return step->reversible(); });
}

TransformChain TransformChain::then(std::shared_ptr<const Transform> step) const {
  std::vector<std::shared_ptr<const Transform>> steps = steps_;
  steps.push_back(std::move(step));
  return TransformChain(std::move(steps));
}

void TransformChain::apply(const MatrixView& rows, const MutableMatrixView& out, const Resources& resources) const {
  const DefaultFloatMode mode;
  run_steps(steps_, true, rows, out, resources);
}

void TransformChain::reverse(const MatrixView& rows, const MutableMatrixView& out, const Resources& resources) const {
  const DefaultFloatMode mode;
  for (const auto& step : steps_) step->check_reversible();
  run_steps(steps_, false, rows, out, resources);
}

Footprint TransformChain::footprint(const RowsInfo& rows, const Resources& resources) const {
  if (empty()) return {};
  const auto all = [&](int64_t cols, DType dtype) {
    return MutableMatrixView(counted_only_memory(), dtype, {rows.rows, cols, cols}, rows.space);
  };
  return footprint_of_call(resources, [&](const Resources& counting) {
    run_steps(steps_, true, all(in(), rows.dtype), all(out(), DType::f32), counting);
    run_steps(steps_, false, all(out(), DType::f32), all(in(), DType::f32), counting);
  });
}

Footprint transform_footprint(const std::vector<const TransformParts*>& steps, const RowsInfo& rows,
                              const Resources& resources) {
  return steps.empty() ? Footprint() : PieceSteps(steps, true).footprint(rows, resources);
}

bool same_transforms(const TransformChain& a, const TransformChain& b) {
  const auto same = [](const std::shared_ptr<const Transform>& x, const std::shared_ptr<const Transform>& y) {
    if (x == y) return true;
    const TransformParts& p = x->parts();
    const TransformParts& q = y->parts();
    return p.kind == q.kind && p.in == q.in && p.out == q.out && p.matrix == q.matrix && p.offset == q.offset;
  };
  return std::equal(a.steps().begin(), a.steps().end(), b.steps().begin(), b.steps().end(), same);
}

}  // namespace kith
