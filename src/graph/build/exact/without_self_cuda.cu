#include "graph/build/exact/without_self.hpp"

#include "core/divide.hpp"
#include "cuda/device_context.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/launch.hpp"
#include "kernels/select/device_warp_cuda.hpp"

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

// A warp for each row looks for the row itself, then copies what stands before and behind it.
__global__ void __launch_bounds__(kThreads) put_kernel(NeighborsView found, int64_t first, NeighborsView out) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (i >= found.queries) return;
  const int64_t row = first + i;
  const int64_t* const ids = found.ids + i * found.k;
  int64_t self = out.k;
  for (int64_t start = 0; start < out.k; start += 32) {
    const int64_t j = start + lane_index();
    const unsigned here = __ballot_sync(kAllLanes, j < out.k && ids[j] == row);
    if (here == 0) continue;
    self = start + __ffs(static_cast<int>(here)) - 1;
    break;
  }
  for (int64_t j = lane_index(); j < out.k; j += 32) {
    const int64_t from = i * found.k + j + (j < self ? 0 : 1);
    out.ids[row * out.k + j] = found.ids[from];
    out.distances[row * out.k + j] = found.distances[from];
  }
}

}  // namespace

void put_without_self_cuda(const NeighborsView& found, int64_t first, const NeighborsView& out,
                           const Resources& resources) {
  if (found.queries == 0) return;
  const DeviceGuard guard(out.space.device);
  const DeviceContext context(out.space.device, resources.options().stream);
  launch(put_kernel, Grid::of(divide_up(found.queries, kWarps), kThreads), context.stream(), found, first, out);
}

}  // namespace kith
