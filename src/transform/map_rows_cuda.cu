// A warp for each row: neighbouring threads take neighbouring columns.
#include "core/divide.hpp"
#include "core/dtype_visit.hpp"
#include "cuda/launch.hpp"
#include "transform/map_rows_cuda.hpp"

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

template <typename T>
__global__ void __launch_bounds__(kThreads)
    map_rows_kernel(DeviceRowsView rows, RowMap map, float* to, int64_t stride) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (row >= rows.count) return;
  const T* const values = rows.row<T>(row);
  float* const out = to + row * stride;
  const double inverse = map.inverse_norms != nullptr ? map.inverse_norms[row] : 1.0;
  for (int64_t c = threadIdx.x % 32; c < map.out; c += 32) {
    float value = c < map.in ? static_cast<float>(values[c]) : c == map.in ? map.behind : 0.0f;
    if (map.offset != nullptr) value = __fadd_rn(value, map.sign * map.offset[c]);
    if (map.inverse_norms != nullptr) value = static_cast<float>(static_cast<double>(value) * inverse);
    out[c] = value;
  }
}

}  // namespace

void launch_map_rows(const DeviceRowsView& rows, const RowMap& map, float* to, int64_t stride, cudaStream_t stream) {
  visit_dtype(rows.dtype, [&](auto stored) {
    using T = typename decltype(stored)::type;
    launch(map_rows_kernel<T>, Grid::of(divide_up(rows.count, kWarps), kThreads), stream, rows, map, to, stride);
  });
}

}  // namespace kith
