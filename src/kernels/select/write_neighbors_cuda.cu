// Neighbouring threads write neighbouring places, whatever k is: a query has about as many threads as places, and a
// block as many queries as fit. They look for the query's own row, where it is to be left out, before they write.
#include "kernels/select/write_neighbors_cuda.hpp"

#include "core/divide.hpp"
#include "core/ordered_key.hpp"
#include "core/result_exit.hpp"
#include "cuda/launch.hpp"
#include "cuda/ptx.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kMostThreads = 1024;       // per query, if k is large
constexpr int64_t kNoRowIsLeftOut = -1;  // passed instead of the first query's row

// threadIdx.x runs over the places of query threadIdx.y.
__global__ void __launch_bounds__(kMostThreads)
    write_neighbors_kernel(ResultExit exit, DeviceLists lists, int64_t first_row, NeighborsView out) {
  __shared__ int64_t own_places[kThreads];
  const int64_t query = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  const bool there = query < out.queries;
  const uint64_t* const list = lists.neighbors + (there ? query * lists.k : 0);
  if (threadIdx.x == 0) own_places[threadIdx.y] = lists.k;  // the row itself may not be listed
  ptx::wait_for_kernel_before();
  __syncthreads();
  if (there && first_row != kNoRowIsLeftOut) {
    const auto own_row = static_cast<uint32_t>(first_row + query);
    for (int64_t i = threadIdx.x; i < lists.k; i += blockDim.x) {
      if (row_of(list[i]) == own_row) own_places[threadIdx.y] = i;
    }
  }
  __syncthreads();
  if (!there) return;
  const int64_t own_place = own_places[threadIdx.y];
  for (int64_t i = threadIdx.x; i < out.k; i += blockDim.x) {
    const int64_t from = i < own_place ? i : i + 1;
    const uint64_t neighbor = from < lists.k ? list[from] : kPadding;
    out.ids[query * out.k + i] = exit.id(neighbor);
    out.distances[query * out.k + i] = exit.distance(neighbor);
  }
}

void write_lists(Metric metric, const DeviceLists& lists, int64_t first_row, const NeighborsView& out, cudaStream_t stream) {
  if (out.k == 0) return;
  int threads = 1;
  while (threads < out.k && threads < kMostThreads) threads *= 2;
  const int queries = std::max(kThreads / threads, 1);
  const Grid grid{dim3(static_cast<unsigned>(divide_up(out.queries, queries))),
                  dim3(static_cast<unsigned>(threads), static_cast<unsigned>(queries))};
  launch(write_neighbors_kernel, grid.chained(), stream, ResultExit(metric), lists, first_row, out);
}

__device__ uint64_t neighbor_at(const PackSelectedTask& task, int64_t i) {
  const int32_t column = task.columns[i];
  if (column < 0) return kPadding;
  const uint32_t row = task.numbers == nullptr ? static_cast<uint32_t>(task.first_row + column) : task.numbers[column];
  return pack_neighbor(ordered_key(task.keys[i]), row);
}

__global__ void __launch_bounds__(kThreads) pack_selected_kernel(PackSelectedTask task) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < task.count) task.neighbors[i] = neighbor_at(task, i);
}

__global__ void __launch_bounds__(kThreads)
    write_selected_kernel(PackSelectedTask task, int64_t k, ResultExit exit, NeighborsView out) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= out.queries * out.k) return;
  const int64_t place = i % out.k;
  const uint64_t neighbor = place < k ? neighbor_at(task, i / out.k * k + place) : kPadding;
  out.ids[i] = exit.id(neighbor);
  out.distances[i] = exit.distance(neighbor);
}

}  // namespace

void launch_write_neighbors(Metric metric, const DeviceLists& lists, const NeighborsView& out, cudaStream_t stream) {
  write_lists(metric, lists, kNoRowIsLeftOut, out, stream);
}

void launch_write_others(Metric metric, const DeviceLists& lists, int64_t first_row, const NeighborsView& out,
                         cudaStream_t stream) {
  write_lists(metric, lists, first_row, out, stream);
}

void launch_pack_selected(const PackSelectedTask& task, cudaStream_t stream) {
  launch(pack_selected_kernel, Grid::over(task.count, kThreads), stream, task);
}

void launch_write_selected(const PackSelectedTask& task, int64_t k, Metric metric, const NeighborsView& out,
                           cudaStream_t stream) {
  launch(write_selected_kernel, Grid::over(out.queries * out.k, kThreads), stream, task, k, ResultExit(metric), out);
}

}  // namespace kith
