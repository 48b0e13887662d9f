#include "graph/lists/list_passes_cuda.hpp"

#include "core/result_exit.hpp"
#include "cuda/launch.hpp"
#include "graph/lists/working_lists.hpp"

namespace kith {
namespace {

constexpr int kThreads = 256;

__device__ uint64_t changed(uint64_t neighbor, Flags flags) {
  if (flags == Flags::set) return neighbor | kOldFlag;
  return flags == Flags::clear ? without_flag(neighbor) : neighbor;
}

// A thread for each row; the block's rows are added by a fixed tree.
__global__ void __launch_bounds__(kSurveyRows)
    survey_kernel(DeviceWorkingLists lists, int64_t k, ResultExit exit, Flags flags, ListSurvey* parts) {
  __shared__ double phi[kSurveyRows];
  __shared__ int updates[kSurveyRows];
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kSurveyRows + threadIdx.x;
  double sum = 0;
  int count = 0;
  if (row < lists.rows) {
    uint64_t* const list = lists.entries + row * lists.length;
    for (int64_t j = 0; j < lists.length; ++j) {
      const uint64_t neighbor = list[j];
      if (neighbor == kPadding) break;
      if (j < k) sum += exit.distance(neighbor);
      count += is_old(neighbor) ? 0 : 1;
      const uint64_t next = changed(neighbor, flags);
      if (next != neighbor) list[j] = next;
    }
  }
  phi[threadIdx.x] = sum;
  updates[threadIdx.x] = count;
  for (int apart = kSurveyRows / 2; apart > 0; apart /= 2) {
    __syncthreads();
    if (threadIdx.x < apart) {
      phi[threadIdx.x] += phi[threadIdx.x + apart];
      updates[threadIdx.x] += updates[threadIdx.x + apart];
    }
  }
  if (threadIdx.x == 0) parts[blockIdx.x] = {phi[0], updates[0]};
}

__global__ void __launch_bounds__(kThreads)
    gather_kernel(DeviceWorkingLists lists, const uint32_t* rows, int64_t count, uint64_t* out) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= count * lists.length) return;
  out[at] = lists.entries[static_cast<int64_t>(rows[at / lists.length]) * lists.length + at % lists.length];
}

__global__ void __launch_bounds__(kThreads) resize_kernel(DeviceWorkingLists lists, DeviceWorkingLists to) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= to.rows * to.length) return;
  const int64_t j = at % to.length;
  to.entries[at] = j < lists.length ? lists.entries[at / to.length * lists.length + j] : kPadding;
}

__global__ void __launch_bounds__(kThreads)
    write_kernel(DeviceWorkingLists lists, ResultExit exit, int64_t first, NeighborsView out) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= out.queries * out.k) return;
  const int64_t j = at % out.k;
  const uint64_t stored = j < lists.length ? lists.entries[(first + at / out.k) * lists.length + j] : kPadding;
  const uint64_t neighbor = stored == kPadding ? kPadding : without_flag(stored);
  out.ids[at] = exit.id(neighbor);
  out.distances[at] = exit.distance(neighbor);
}

}  // namespace

void launch_survey_lists(const DeviceWorkingLists& lists, int64_t k, Metric metric, Flags flags, ListSurvey* parts,
                         cudaStream_t stream) {
  launch(survey_kernel, Grid::of(survey_parts(lists.rows), kSurveyRows), stream, lists, k, ResultExit(metric), flags,
         parts);
}

void launch_gather_lists(const DeviceWorkingLists& lists, const uint32_t* rows, int64_t count, uint64_t* out,
                         cudaStream_t stream) {
  launch(gather_kernel, Grid::over(count * lists.length, kThreads), stream, lists, rows, count, out);
}

void launch_resize_lists(const DeviceWorkingLists& lists, const DeviceWorkingLists& to, cudaStream_t stream) {
  launch(resize_kernel, Grid::over(to.rows * to.length, kThreads), stream, lists, to);
}

void launch_write_lists(const DeviceWorkingLists& lists, Metric metric, int64_t first, const NeighborsView& out,
                        cudaStream_t stream) {
  launch(write_kernel, Grid::over(out.queries * out.k, kThreads), stream, lists, ResultExit(metric), first, out);
}

}  // namespace kith
