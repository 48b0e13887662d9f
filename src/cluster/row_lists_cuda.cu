#include "cluster/row_lists_cuda.hpp"

#include "core/dtype_visit.hpp"
#include "core/ordered_key.hpp"
#include "cuda/launch.hpp"
#include "cuda/vector_access.hpp"

#include <cmath>

namespace kith {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    take_found_kernel(const uint64_t* found, int64_t count, const uint32_t* rows, int32_t* labels, float* keys) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  const int64_t row = rows == nullptr ? i : int64_t{rows[i]};
  labels[row] = static_cast<int32_t>(row_of(found[i]));
  keys[row] = key_of_ordered(ordered_of(found[i]));
}

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

// A power of two in double is exact: what is rounded is rounded once.
__global__ void __launch_bounds__(kThreads)
    distances_of_keys_kernel(float* keys, int64_t count, bool spherical, double scale) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  const float key = keys[i];
  keys[i] = spherical ? 0.0f - key : static_cast<float>(static_cast<double>(__fsqrt_rn(key)) * scale);
}

}  // namespace

void launch_take_found(const uint64_t* found, int64_t count, const uint32_t* rows, int32_t* labels, float* keys,
                       cudaStream_t stream) {
  launch(take_found_kernel, Grid::over(count, kThreads), stream, found, count, rows, labels, keys);
}

void launch_distances_of_keys(float* keys, int64_t count, bool spherical, int exponent, cudaStream_t stream) {
  launch(distances_of_keys_kernel, Grid::over(count, kThreads), stream, keys, count, spherical,
         std::ldexp(1.0, -exponent));
}

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

}  // namespace kith
