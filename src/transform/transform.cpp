#include "transform/transform.hpp"

#include <kith/error.hpp>
#include <kith/pairwise_distances.hpp>

#include "core/divide.hpp"
#include "core/float_mode.hpp"
#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "core/typed_row.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "rows/stored_row.hpp"
#include "transform/dense.hpp"
#include "transform/dense_product.hpp"
#include "transform/transform_cuda.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kith {
namespace {

using Kind = TransformParts::Kind;

constexpr int64_t kValuesATask = 1 << 16;

// Runs body(row) for every row, some rows a task.
template <typename Body>
void for_each_row(int64_t rows, int64_t cols, const Resources& resources, const Body& body) {
  const int64_t step = std::max<int64_t>(1, kValuesATask / std::max<int64_t>(cols, 1));
  ProgressMeter meter("transform", rows, resources);
  parallel_for(divide_up(rows, step), meter, resources, [&](int64_t task, int) {
    for (int64_t i = task * step; i < std::min((task + 1) * step, rows); ++i) body(i);
  });
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

// As many columns as `out` has: zeros behind, or the last ones dropped.
void resize_rows(const MatrixView& rows, const MutableMatrixView& out, const Resources& resources) {
  const int64_t kept = std::min(rows.cols(), out.cols());
  const MatrixView some(rows.data(), rows.dtype(), {rows.rows(), kept, rows.row_stride()}, rows.space());
  for_each_row(rows.rows(), out.cols(), resources, [&](int64_t i) {
    widen_row(some, i, typed_row<float>(out, i));
    std::fill(typed_row<float>(out, i) + kept, typed_row<float>(out, i) + out.cols(), 0.0f);
  });
}

void multiply_rows(const MatrixView& rows, const MatrixView& matrix, const MutableMatrixView& out,
                   const Resources& resources) {
  pairwise_distances(rows, matrix, out, {Metric::inner_product, false}, resources);
}

// With the offset as a last column, some rows at a time.
void multiply_with_offset(const TransformParts& parts, const MatrixView& rows, const MutableMatrixView& out,
                          const Resources& resources) {
  const int64_t cols = parts.in + 1;
  const HostArray<float> matrix(parts.out * cols, "a transform", resources);
  for (int64_t j = 0; j < parts.out; ++j) {
    std::copy_n(parts.matrix.data() + j * parts.in, parts.in, matrix.data() + j * cols);
    matrix[j * cols + parts.in] = parts.offset[static_cast<size_t>(j)];
  }
  const int64_t step = std::min(rows.rows(), std::max<int64_t>(1, (1 << 20) / cols));
  const HostArray<float> some(step * cols, "rows of a transform", resources);
  for (int64_t first = 0; first < rows.rows(); first += step) {
    const int64_t count = std::min(step, rows.rows() - first);
    for_each_row(count, cols, resources, [&](int64_t i) {
      widen_row(rows, first + i, some.data() + i * cols);
      some[i * cols + parts.in] = 1.0f;
    });
    multiply_rows(MatrixView(some.data(), count, cols), MatrixView(matrix.data(), parts.out, cols),
                  out.slice(first, count), resources);
  }
}

// Whether the transpose leads back: rows are orthonormal, or columns where there are more rows than columns.
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

void check_transform_rows(const MatrixView& rows, int64_t cols, const MutableMatrixView& out, int64_t out_cols) {
  if (rows.cols() != cols) {
    throw InvalidArgument(fmt::format("the rows have {} columns; the transform takes {}", rows.cols(), cols));
  }
  if (out.dtype() != DType::f32 || out.rows() != rows.rows() || out.cols() != out_cols) {
    throw InvalidArgument(fmt::format("the output is {} {} x {}; transformed rows are f32, {} x {}",
                                      name_of(out.dtype()), out.rows(), out.cols(), rows.rows(), out_cols));
  }
}

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

std::shared_ptr<const Transform> Transform::from_parts(TransformParts parts, const Resources& resources) {
  return std::shared_ptr<const Transform>(new Transform(std::move(parts), resources));
}

int64_t Transform::bytes() const {
  return array_bytes<float>(static_cast<int64_t>(parts_.matrix.size() + parts_.offset.size()));
}

void Transform::check_reversible() const {
  if (!orthonormal_) {
    throw Unsupported(fmt::format("the transform \"{}\" cannot be undone: its matrix is not orthonormal", parts_.name));
  }
}

void Transform::apply(const MatrixView& rows, const MutableMatrixView& out, const Resources& outer) const {
  const DefaultFloatMode mode;
  check_transform_rows(rows, in(), out, this->out());
  const Resources resources = outer.with_progress({});
  if (const std::optional<int> device = device_of_rows(rows, out)) {
    return transform_cuda({{&parts_, true}}, rows, out, *device, resources);
  }
  if (parts_.kind == Kind::linear && parts_.offset.empty()) {
    return multiply_rows(rows, MatrixView(parts_.matrix.data(), parts_.out, parts_.in), out, resources);
  }
  switch (parts_.kind) {
    case Kind::linear: return multiply_with_offset(parts_, rows, out, resources);
    case Kind::shift: return shift_rows(rows, parts_.offset.data(), 1.0f, out, resources);
    case Kind::unit_length: return scale_rows(rows, out, resources);
    case Kind::padding: return resize_rows(rows, out, resources);
  }
}

void Transform::reverse(const MatrixView& rows, const MutableMatrixView& out, const Resources& outer) const {
  const DefaultFloatMode mode;
  check_transform_rows(rows, this->out(), out, in());
  check_reversible();
  const Resources resources = outer.with_progress({});
  if (const std::optional<int> device = device_of_rows(rows, out)) {
    return transform_cuda({{&parts_, false}}, rows, out, *device, resources);
  }
  switch (parts_.kind) {
    case Kind::shift: return shift_rows(rows, parts_.offset.data(), -1.0f, out, resources);
    case Kind::unit_length:
    case Kind::padding: return resize_rows(rows, out, resources);
    case Kind::linear: break;
  }
  const HostArray<float> transposed(parts_.in * parts_.out, "a transposed transform", resources);
  for (int64_t j = 0; j < parts_.out; ++j) {
    for (int64_t i = 0; i < parts_.in; ++i) {
      transposed[i * parts_.out + j] = parts_.matrix[static_cast<size_t>(j * parts_.in + i)];
    }
  }
  const MatrixView matrix(transposed.data(), parts_.in, parts_.out);
  if (parts_.offset.empty()) return multiply_rows(rows, matrix, out, resources);
  const int64_t step = std::min(rows.rows(), std::max<int64_t>(1, (1 << 20) / parts_.out));
  const HostArray<float> some(step * parts_.out, "rows of a transform", resources);
  for (int64_t first = 0; first < rows.rows(); first += step) {
    const int64_t count = std::min(step, rows.rows() - first);
    const MutableMatrixView shifted(some.data(), count, parts_.out);
    shift_rows(rows.slice(first, count), parts_.offset.data(), -1.0f, shifted, resources);
    multiply_rows(shifted, matrix, out.slice(first, count), resources);
  }
}

}  // namespace kith
