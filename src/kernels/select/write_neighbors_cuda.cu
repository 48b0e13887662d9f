#include "kernels/select/write_neighbors_cuda.hpp"

#include "core/ordered_key.hpp"
#include "cuda/error.hpp"
#include "kernels/select/other_neighbors.hpp"

namespace kith {
namespace {

constexpr int kThreads = 256;

__device__ void write_neighbor(bool larger_nearer, uint64_t neighbor, const NeighborsView& out, int64_t place) {
  const bool real = neighbor != kPadding;
  const float infinity = __int_as_float(0x7F800000);
  const float key = real ? key_of_ordered(ordered_of(neighbor)) : infinity;
  out.ids[place] = real ? static_cast<int64_t>(row_of(neighbor)) : -1;
  out.distances[place] = larger_nearer ? 0.0f - key : key;  // never -0
}

__global__ void __launch_bounds__(kThreads)
    write_neighbors_kernel(bool larger_nearer, DeviceLists lists, NeighborsView out) {
  const int64_t place = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (place >= out.queries * out.k) return;
  const int64_t query = place / out.k;
  const int64_t i = place % out.k;
  write_neighbor(larger_nearer, i < lists.k ? lists.neighbors[query * lists.k + i] : kPadding, out, place);
}

// A thread for each query: there are at least as many as neighbours, and what it takes is little beside their search.
__global__ void __launch_bounds__(kThreads)
    write_others_kernel(bool larger_nearer, DeviceLists lists, int64_t first_row, NeighborsView out) {
  const int64_t query = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (query >= out.queries) return;
  OtherNeighbors others{lists.neighbors + query * lists.k, lists.k, static_cast<uint32_t>(first_row + query)};
  for (int64_t i = 0; i < out.k; ++i) write_neighbor(larger_nearer, others.next(), out, query * out.k + i);
}

unsigned blocks_for(int64_t threads) { return static_cast<unsigned>((threads + kThreads - 1) / kThreads); }

}  // namespace

void launch_write_neighbors(Metric metric, const DeviceLists& lists, const NeighborsView& out, cudaStream_t stream) {
  const int64_t places = out.queries * out.k;
  if (places == 0) return;
  write_neighbors_kernel<<<blocks_for(places), kThreads, 0, stream>>>(larger_is_nearer(metric), lists, out);
  KITH_CUDA_CHECK_LAUNCH("write_neighbors_kernel");
}

void launch_write_others(Metric metric, const DeviceLists& lists, int64_t first_row, const NeighborsView& out,
                         cudaStream_t stream) {
  if (out.queries == 0) return;
  write_others_kernel<<<blocks_for(out.queries), kThreads, 0, stream>>>(larger_is_nearer(metric), lists, first_row,
                                                                        out);
  KITH_CUDA_CHECK_LAUNCH("write_others_kernel");
}

}  // namespace kith
