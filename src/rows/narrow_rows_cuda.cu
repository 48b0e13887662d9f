#include "rows/rows_cuda.hpp"

#include "core/dtype_visit.hpp"
#include "cuda/device_array.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/launch.hpp"
#include "rows/device_rows.hpp"

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr uint64_t kNothingBeyond = ~uint64_t{0};

struct NarrowingFound {
  unsigned long long first_beyond = kNothingBeyond;  // row * cols + column of the first finite value beyond f32's range
  uint32_t inexact = 0;                              // whether rounding changes a value
};

// A warp for each row. Without `out` rows are only checked.
template <typename X>
__global__ void __launch_bounds__(kThreads)
    narrow_rows_kernel(const X* from, int64_t stride, int64_t rows, int64_t cols, const double* offset, float* out,
                       NarrowingFound* found) {
  const int64_t row = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 32;
  if (row >= rows) return;
  bool inexact = false;
  for (int64_t col = threadIdx.x % 32; col < cols; col += 32) {
    const auto given = static_cast<double>(from[row * stride + col]);
    const double wide = offset == nullptr ? given : given - offset[col];
    const auto rounded = static_cast<float>(wide);
    inexact |= static_cast<double>(rounded) != wide && !isnan(wide);
    if (out == nullptr) continue;
    out[row * cols + col] = rounded;
    if (isinf(rounded) && !isinf(given)) {
      atomicMin(&found->first_beyond, static_cast<unsigned long long>(row * cols + col));
    }
  }
  if (inexact) found->inexact = 1;
}

// Fills `out` where it is not null.
NarrowingFound narrow_on(const std::shared_ptr<const DeviceContext>& context, const MatrixView& rows,
                         const double* offset, float* out, const Resources& resources) {
  const bool may_shift = offset != nullptr || context->counts_only();  // nobody knows yet what is subtracted
  const DeviceArray<double> shift(may_shift ? rows.cols() : 0, "the offset", context, resources);
  if (offset != nullptr) context->copy_values(shift.data(), offset, rows.cols());
  const DeviceArray<NarrowingFound> found(1, "a check of rows", context, resources);
  NarrowingFound told;
  context->copy_values(found.data(), &told, 1);
  const auto narrow = [&](auto stored) {
    using X = typename decltype(stored)::type;
    launch(narrow_rows_kernel<X>, Grid::over(rows.rows() * 32, kThreads), context->stream(),
           static_cast<const X*>(rows.data()), rows.row_stride(), rows.rows(), rows.cols(),
           offset == nullptr ? nullptr : shift.data(), out, found.data());
  };
  rows.dtype() == DType::f64 ? narrow(StoredAs<double>()) : visit_dtype(rows.dtype(), narrow);
  context->copy_values(&told, found.data(), 1);
  context->synchronize();
  return told;
}

}  // namespace

std::shared_ptr<const float> narrow_cuda(std::string_view name, const MatrixView& rows, const double* offset,
                                         const Resources& resources) {
  const DeviceGuard guard(rows.space().device);
  const auto context = std::make_shared<const DeviceContext>(rows.space().device, resources.options().stream);
  const auto narrowed =
      std::make_shared<DeviceArray<float>>(rows.rows() * rows.cols(), "vectors as f32", context, resources);
  std::shared_ptr<const float> values(narrowed, narrowed->data());
  if (rows.empty()) return values;
  const NarrowingFound found = narrow_on(context, rows, offset, narrowed->data(), resources);
  if (found.first_beyond != kNothingBeyond) {
    const auto at = static_cast<int64_t>(found.first_beyond);
    const int64_t row = at / rows.cols(), col = at % rows.cols();
    double value = 0;  // of f64: no other type has a value beyond f32's range
    context->copy(&value, rows.row(row) + col * size_of(rows.dtype()), size_of(DType::f64));
    context->synchronize();
    throw_beyond_float(name, value, row, col);
  }
  return values;
}

bool is_exact_cuda(const MatrixView& rows, const double* offset, const Resources& resources) {
  const DeviceGuard guard(rows.space().device);
  const auto context = std::make_shared<const DeviceContext>(rows.space().device, resources.options().stream);
  return narrow_on(context, rows, offset, nullptr, resources).inexact == 0;
}

}  // namespace kith
