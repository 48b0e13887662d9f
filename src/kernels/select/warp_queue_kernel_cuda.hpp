// WarpSelect over the rows of a matrix, with columns or 64-bit ids as payload.
//
// Long rows get the four warps of a block, each of which takes every fourth group of 32 values; their sorted queues
// are then merged two by two through shared memory, with the odd-size network. Short rows get one warp each.
// Section 4.2 of the 2019 paper.
#pragma once

#include "core/divide.hpp"
#include "cuda/launch.hpp"
#include "kernels/select/device_warp_cuda.hpp"
#include "kernels/select/select_rows_cuda.hpp"
#include "kernels/select/select_value_cuda.hpp"
#include "kernels/select/warp_select.hpp"

namespace kith {

inline constexpr int kQueueWarps = 4;
inline constexpr int64_t kOneWarpLongestRow = 4096;

template <typename Entry, int kQueue>
__global__ void __launch_bounds__(32 * kQueueWarps) warp_queue_kernel(SelectCall call, int warps_per_row) {
  using Select = WarpSelect<DeviceWarp<Entry>, kQueue>;
  __shared__ Entry queues[kQueueWarps / 2][Select::kCapacity];
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = lane_index();
  const int64_t row = (static_cast<int64_t>(blockIdx.x) * kQueueWarps + warp) / warps_per_row;
  if (row >= call.input.rows) return;
  const int part = warp % warps_per_row;
  const int64_t length = row_length(call.input, row);
  const float* const values = call.input.values + row * call.input.row_stride;
  const int64_t* const ids = call.input.ids != nullptr ? call.input.ids + row * call.input.row_stride : nullptr;
  const int k = static_cast<int>(call.k);

  Select select(k);
  const int64_t step = 32 * warps_per_row;
  int64_t column = 32 * part + lane;
  float next = column < length ? values[column] : 0.0f;
  // One place in the code where the queues are merged, as the network is long: when one is full, and at the end.
  for (bool more = true; more; select.flush()) {
    bool full = false;
    while (!full && (more = column - lane < length)) {
      const float value = next;
      if (column + step < length) next = values[column + step];  // prefetch the next value
      Entry entry = EntryOf<Entry>::padding();
      if (column < length) {
        const int64_t payload = ids != nullptr ? ids[column] : column;
        entry = EntryOf<Entry>::make(select_key(value, call.largest), static_cast<uint64_t>(payload));
      }
      full = select.push(entry);
      column += step;
    }
  }

  for (int apart = 1; apart < warps_per_row; apart *= 2) {
    const bool gives = (part & (2 * apart - 1)) == apart;
    Entry* const shared = queues[part / (2 * apart)];
    if (gives) {
      KITH_UNROLL
      for (int i = 0; i < kQueue; ++i) shared[32 * i + lane] = select.sorted(i);
    }
    __syncthreads();
    if ((part & (2 * apart - 1)) == 0) {
      select.merge_mirrored([&](int i) { return shared[32 * i + 31 - lane]; });
    }
    __syncthreads();
  }
  if (part != 0) return;
  KITH_UNROLL
  for (int i = 0; i < kQueue; ++i) {
    if (32 * i + lane < k) write_selected(call.output, row * k + 32 * i + lane, select.sorted(i), call.largest);
  }
}

template <typename Entry, int kQueue>
void launch_warp_queue(const SelectCall& call, cudaStream_t stream) {
  const int warps_per_row = call.input.cols <= kOneWarpLongestRow ? 1 : kQueueWarps;
  const int64_t blocks = divide_up(call.input.rows * warps_per_row, kQueueWarps);
  launch(warp_queue_kernel<Entry, kQueue>, Grid::of(blocks, 32 * kQueueWarps), stream, call, warps_per_row);
}

template <typename Entry>
void launch_warp_queue_for_k(const SelectCall& call, cudaStream_t stream) {
  if (call.k <= 32) return launch_warp_queue<Entry, 1>(call, stream);
  if (call.k <= 64) return launch_warp_queue<Entry, 2>(call, stream);
  if (call.k <= 128) return launch_warp_queue<Entry, 4>(call, stream);
  if (call.k <= 256) return launch_warp_queue<Entry, 8>(call, stream);
  if (call.k <= 512) return launch_warp_queue<Entry, 16>(call, stream);
  if (call.k <= 1024) return launch_warp_queue<Entry, 32>(call, stream);
  if constexpr (sizeof(Entry) == sizeof(uint64_t)) launch_warp_queue<Entry, 64>(call, stream);
}

}  // namespace kith
