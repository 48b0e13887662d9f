#include "ivf/segment/sort_lists_cuda.hpp"

#include "cuda/error.hpp"
#include "cuda/launch.hpp"
#include "cuda/workspace_layout.hpp"
#include "ivf/segment/copy_codes_cuda.hpp"

#include <cub/device/device_radix_sort.cuh>

namespace kith {
namespace {

constexpr int kThreads = 256;

int bits_for(int64_t lists) {
  int bits = 1;
  while (int64_t{1} << bits < lists) ++bits;
  return bits;
}

size_t radix_bytes(int64_t count, int64_t lists) {
  cub::DoubleBuffer<uint32_t> keys;
  cub::DoubleBuffer<uint32_t> values;
  size_t bytes = 0;
  KITH_CUDA_CHECK(cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, values, count, 0, bits_for(lists), nullptr));
  return bytes;
}

struct SortLayout : WorkspaceLayout {
  SortLayout(int64_t count, int64_t lists) {
    keys = take<uint32_t>(count);
    for (Slot<uint32_t>& one : order) one = take<uint32_t>(count);
    radix = take<std::byte>(static_cast<int64_t>(radix_bytes(count, lists)));
  }
  Slot<uint32_t> keys;
  Slot<uint32_t> order[2];
  Slot<std::byte> radix;
};

__global__ void __launch_bounds__(kThreads)
    number_rows_kernel(int32_t* labels, int64_t count, int64_t lists, uint32_t* order) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  if (labels[i] < 0 || labels[i] >= lists) labels[i] = 0;
  order[i] = static_cast<uint32_t>(i);
}

// The lists up to a row's, and after the row before's, begin at it; those after the last row's end there.
__global__ void __launch_bounds__(kThreads)
    offsets_kernel(const uint32_t* labels, int64_t count, int64_t lists, int64_t* offsets) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i > count) return;
  const int64_t first = i == 0 ? 0 : int64_t{labels[i - 1]} + 1;
  const int64_t last = i == count ? lists : int64_t{labels[i]};
  for (int64_t list = first; list <= last; ++list) offsets[list] = i;
}

template <typename Unit>
__global__ void __launch_bounds__(kThreads)
    place_rows_kernel(const uint32_t* order, int64_t count, uint32_t first_row, const uint8_t* codes,
                      int64_t code_bytes, uint8_t* sorted, uint32_t* rows) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t warp_first = i - threadIdx.x % 32;
  if (warp_first >= count) return;
  const int64_t from = i < count ? int64_t{order[i]} : 0;
  if (i < count) rows[i] = first_row + static_cast<uint32_t>(from);
  const int real = count - warp_first < 32 ? static_cast<int>(count - warp_first) : 32;
  copy_codes<Unit>(codes, sorted, code_bytes, from, i, real);
}

}  // namespace

int64_t sort_lists_bytes(int64_t count, int64_t lists) { return SortLayout(count, lists).bytes; }

void launch_sort_lists(const SortListsTask& task, std::byte* memory, cudaStream_t stream) {
  const SortLayout at(task.count, task.lists);
  cub::DoubleBuffer<uint32_t> keys(reinterpret_cast<uint32_t*>(task.labels), at.keys.in(memory));
  cub::DoubleBuffer<uint32_t> order(at.order[0].in(memory), at.order[1].in(memory));
  launch(number_rows_kernel, Grid::over(task.count, kThreads), stream, task.labels, task.count, task.lists,
         order.Current());
  if (task.count > 0) {
    auto room = static_cast<size_t>(at.radix.bytes());
    KITH_CUDA_CHECK(cub::DeviceRadixSort::SortPairs(at.radix.in(memory), room, keys, order, task.count, 0,
                                                    bits_for(task.lists), stream));
  }
  launch(offsets_kernel, Grid::over(task.count + 1, kThreads), stream, keys.Current(), task.count, task.lists,
         task.offsets);
  visit_code_unit(task.code_bytes, [&](auto unit) {
    launch(place_rows_kernel<decltype(unit)>, Grid::over(task.count, kThreads), stream, order.Current(), task.count,
           task.first_row, task.codes, task.code_bytes, task.sorted_codes, task.rows);
  });
}

}  // namespace kith
