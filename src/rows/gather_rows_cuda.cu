#include "rows/gather_rows_cuda.hpp"

#include "core/dtype_visit.hpp"
#include "cuda/device_array.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/launch.hpp"
#include "cuda/vector_access.hpp"
#include "rows/rows_cuda.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int kThreads = 256;

// A warp for each row.
__global__ void __launch_bounds__(kThreads)
    gather_rows_kernel(const std::byte* from, int64_t stride_bytes, int64_t row_bytes, const uint32_t* rows,
                       int64_t count, std::byte* out, bool words) {
  const int64_t i = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 32;
  if (i >= count) return;
  const std::byte* const row = from + int64_t{rows[i]} * stride_bytes;
  std::byte* const to = out + i * row_bytes;
  if (words) {
    for (int64_t at = threadIdx.x % 32 * 4; at < row_bytes; at += 128) {
      store_vector(to + at, load_vector<uint32_t>(row + at));
    }
    return;
  }
  for (int64_t at = threadIdx.x % 32; at < row_bytes; at += 32) to[at] = row[at];
}

template <typename X>
__global__ void __launch_bounds__(kThreads)
    gather_floats_kernel(const X* from, int64_t stride, int64_t cols, const uint32_t* rows, int64_t count, float* out) {
  const int64_t i = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 32;
  if (i >= count) return;
  const X* const row = from + (rows == nullptr ? i : int64_t{rows[i]}) * stride;
  for (int64_t col = threadIdx.x % 32; col < cols; col += 32) out[i * cols + col] = static_cast<float>(row[col]);
}

}  // namespace

void launch_gather_rows(const DeviceRowsView& from, int64_t cols, const uint32_t* rows, int64_t count, std::byte* out,
                        cudaStream_t stream) {
  const int64_t size = size_of(from.dtype);
  const auto* const data = static_cast<const std::byte*>(from.data);
  const bool words = cols * size % 4 == 0 && from.stride * size % 4 == 0 &&
                     reinterpret_cast<uintptr_t>(data) % 4 == 0 && reinterpret_cast<uintptr_t>(out) % 4 == 0;
  launch(gather_rows_kernel, Grid::over(count * 32, kThreads), stream, data, from.stride * size, cols * size, rows,
         count, out, words);
}

void launch_gather_floats(const DeviceRowsView& from, int64_t cols, const uint32_t* rows, int64_t count, float* out,
                          cudaStream_t stream) {
  visit_dtype(from.dtype, [&](auto stored) {
    using X = typename decltype(stored)::type;
    launch(gather_floats_kernel<X>, Grid::over(count * 32, kThreads), stream, static_cast<const X*>(from.data),
           from.stride, cols, rows, count, out);
  });
}

void gather_cuda(const MatrixView& rows, const std::vector<uint32_t>& numbers, std::byte* out,
                 const Resources& resources) {
  constexpr int64_t kFewRows = 8;  // one copy each is no slower
  const DeviceGuard guard(rows.space().device);
  const auto context = std::make_shared<const DeviceContext>(rows.space().device, resources.options().stream);
  const cudaStream_t stream = context->stream();
  const int64_t row_bytes = rows.cols() * size_of(rows.dtype());
  const auto count = static_cast<int64_t>(numbers.size());
  if (count <= kFewRows || row_bytes + 4 > kGatherBytes / 2) {
    for (int64_t i = 0; i < count; ++i) {
      context->copy(out + i * row_bytes, rows.row(numbers[static_cast<size_t>(i)]), row_bytes);
    }
    return context->synchronize();
  }
  const int64_t at_once = std::min(count, kGatherBytes / 2 / (row_bytes + 4));
  const DeviceArray<uint32_t> list(at_once, "rows to be gathered", context, resources);
  const DeviceBuffer gathered(at_once * row_bytes, "rows to be gathered", context, resources);
  for (int64_t first = 0; first < count; first += at_once) {
    const int64_t part = std::min(at_once, count - first);
    context->copy_values(list.data(), numbers.data() + first, part);
    launch_gather_rows(device_rows(rows), rows.cols(), list.data(), part, gathered.data(), stream);
    context->copy(out + first * row_bytes, gathered.data(), part * row_bytes);
    context->synchronize();
  }
}

void gather_floats_cuda(const MatrixView& rows, const std::vector<uint32_t>& numbers, float* out,
                        const Resources& resources) {
  const DeviceGuard guard(rows.space().device);
  const auto context = std::make_shared<const DeviceContext>(rows.space().device, resources.options().stream);
  const auto count = static_cast<int64_t>(numbers.size());
  const DeviceArray<uint32_t> list(count, "rows to be gathered", context, resources);
  context->copy_values(list.data(), numbers.data(), count);
  launch_gather_floats(device_rows(rows), rows.cols(), list.data(), count, out, context->stream());
  context->synchronize();
}

}  // namespace kith
