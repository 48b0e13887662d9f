#include "transform/transform_chain.hpp"

#include <kith/error.hpp>
#include <kith/matrix_buffer.hpp>

#include "core/host_array.hpp"
#include "core/memory_budget.hpp"
#include "core/parallel_for.hpp"
#include "core/typed_row.hpp"
#include "rows/stored_row.hpp"
#include "transform/transform_cuda.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kPieceValues = 1 << 20;

// One step on some rows, forward or back.
struct PieceStep {
  const Transform* transform = nullptr;
  bool forward = true;

  int64_t out() const { return forward ? transform->out() : transform->in(); }
  void run(const MatrixView& rows, const MutableMatrixView& to, const Resources& resources) const {
    forward ? transform->apply(rows, to, resources) : transform->reverse(rows, to, resources);
  }
};

void widen_all(const MatrixView& rows, const MutableMatrixView& out, const Resources& resources) {
  if (out.dtype() != DType::f32 || out.rows() != rows.rows() || out.cols() != rows.cols()) {
    throw InvalidArgument("the output has another shape than the rows, or is not f32");
  }
  if (const std::optional<int> device = device_of_rows(rows, out)) {
    const TransformParts same{TransformParts::Kind::padding, "", rows.cols(), rows.cols(), {}, {}};
    return transform_cuda({{&same, true}}, rows, out, *device, resources);
  }
  ProgressMeter meter("transform", rows.rows(), resources);
  parallel_for(rows.rows(), meter, resources, [&](int64_t i, int) { widen_row(rows, i, typed_row<float>(out, i)); });
  meter.finish();
}

// Piece by piece through all steps; between steps rows lie in one of two buffers.
void run_steps(const std::vector<PieceStep>& steps, const MatrixView& rows, const MutableMatrixView& out,
               const Resources& resources) {
  const PieceStep& begin = steps.front();
  check_transform_rows(rows, begin.forward ? begin.transform->in() : begin.transform->out(), out, steps.back().out());
  if (const std::optional<int> device = device_of_rows(rows, out)) {
    std::vector<TransformRun> runs;
    for (const PieceStep& step : steps) {
      if (!step.forward) step.transform->check_reversible();
      runs.push_back({&step.transform->parts(), step.forward});
    }
    return transform_cuda(runs, rows, out, *device, resources);
  }
  int64_t widest = 1;
  for (const PieceStep& step : steps) widest = std::max({widest, step.transform->in(), step.transform->out()});
  const int64_t buffers = std::min<int64_t>(static_cast<int64_t>(steps.size()) - 1, 2);
  // A half of what is left: the steps want some too.
  const int64_t room = resources.host_memory()->available() / 2 / std::max<int64_t>(4 * widest * buffers, 1);
  const int64_t piece =
      buffers == 0 ? std::max<int64_t>(rows.rows(), 1)
                   : std::clamp<int64_t>(kPieceValues / widest, 1, std::max<int64_t>(1, std::min(room, rows.rows())));
  MatrixBuffer between[2];
  for (int64_t b = 0; b < buffers; ++b) {
    between[b] = MatrixBuffer(DType::f32, piece, widest, "rows between transforms", resources);
  }
  ProgressMeter meter("transform", rows.rows(), resources);
  for (int64_t first = 0; first < rows.rows(); first += piece) {
    const int64_t count = std::min(piece, rows.rows() - first);
    MatrixView from = rows.slice(first, count);
    for (size_t s = 0; s < steps.size(); ++s) {
      const bool last = s + 1 == steps.size();
      const int64_t cols = steps[s].out();
      const MutableMatrixView to =
          last ? out.slice(first, count)
               : MutableMatrixView(between[s % 2].mutable_view().data(), DType::f32, {count, cols, cols});
      steps[s].run(from, to, resources);
      from = to;
    }
    meter.add(count);
    meter.poll();
  }
  meter.finish();
}

}  // namespace

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
  for (TransformParts& part : parts) steps.push_back(Transform::from_parts(std::move(part), resources));
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

int64_t TransformChain::step_bytes(int64_t rows, int threads) const {
  constexpr int64_t kMostValues = 1 << 20;
  constexpr int64_t kScratch = 1 << 20;  // of a thread
  const int64_t values = std::min(rows * (widest() + 1), kMostValues) + 2 * (widest() + 1) * widest();
  return array_bytes<float>(values) + (threads + 1) * kScratch;
}

int64_t TransformChain::run_bytes(int64_t rows, int threads) const {
  if (steps_.size() < 2) return empty() ? 0 : step_bytes(rows, threads);
  return 2 * (step_bytes(rows, threads) + array_bytes<float>(2 * widest()));  // rows between steps take a half
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
  if (empty()) return widen_all(rows, out, resources);
  std::vector<PieceStep> steps;
  for (const auto& step : steps_) steps.push_back({step.get(), true});
  run_steps(steps, rows, out, resources);
}

void TransformChain::reverse(const MatrixView& rows, const MutableMatrixView& out, const Resources& resources) const {
  if (empty()) return widen_all(rows, out, resources);
  std::vector<PieceStep> steps;
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) steps.push_back({step->get(), false});
  run_steps(steps, rows, out, resources);
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
