#include "kernels/select/write_neighbors_cuda.hpp"

#include "core/ordered_key.hpp"
#include "cuda/error.hpp"

namespace kith {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    write_neighbors_kernel(bool larger_nearer, DeviceLists lists, NeighborsView out) {
  const int64_t place = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (place >= out.queries * out.k) return;
  const int64_t query = place / out.k;
  const int64_t i = place % out.k;
  const uint64_t neighbor = i < lists.k ? lists.neighbors[query * lists.k + i] : kPadding;
  const bool real = neighbor != kPadding;
  const float infinity = __int_as_float(0x7F800000);
  const float key = real ? key_of_ordered(ordered_of(neighbor)) : infinity;
  out.ids[place] = real ? static_cast<int64_t>(row_of(neighbor)) : -1;
  out.distances[place] = larger_nearer ? 0.0f - key : key;  // never -0
}

}  // namespace

void launch_write_neighbors(Metric metric, const DeviceLists& lists, const NeighborsView& out, cudaStream_t stream) {
  const int64_t places = out.queries * out.k;
  if (places == 0) return;
  write_neighbors_kernel<<<static_cast<unsigned>((places + kThreads - 1) / kThreads), kThreads, 0, stream>>>(
      larger_is_nearer(metric), lists, out);
  KITH_CUDA_CHECK_LAUNCH("write_neighbors_kernel");
}

}  // namespace kith
