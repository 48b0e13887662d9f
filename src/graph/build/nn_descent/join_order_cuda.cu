#include "graph/build/nn_descent/join_cuda.hpp"

#include "core/memory_budget.hpp"
#include "core/ordered_key.hpp"
#include "cuda/error.hpp"
#include "cuda/launch.hpp"
#include "graph/build/nn_descent/join_rules.hpp"

#include <cub/device/device_radix_sort.cuh>

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kNearest = 8;  // neighbours that a label is taken of

// The label in generation 0, where there are no labels yet, is drawn.
__device__ uint32_t label_of(const uint32_t* labels, uint32_t row) {
  return labels == nullptr ? static_cast<uint32_t>(mixed(row) >> 32) : labels[row];
}

__device__ uint32_t least_label(const DeviceWorkingLists& lists, const uint32_t* labels, int64_t row) {
  const uint64_t* const list = lists.entries + row * lists.length;
  uint32_t least = label_of(labels, static_cast<uint32_t>(row));
  const int64_t count = lists.length < kNearest ? lists.length : kNearest;
  for (int64_t j = 0; j < count && list[j] != kPadding; ++j) {
    least = min(least, label_of(labels, row_of(without_flag(list[j]))));
  }
  return least;
}

__global__ void __launch_bounds__(kThreads)
    label_kernel(DeviceWorkingLists lists, const uint32_t* before, uint32_t* labels) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (row < lists.rows) labels[row] = least_label(lists, before, row);
}

// The third generation, the upper half of the second and of the first.
__global__ void __launch_bounds__(kThreads) key_kernel(DeviceWorkingLists lists, const uint32_t* first,
                                                       const uint32_t* second, uint64_t* keys, uint32_t* numbers) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (row >= lists.rows) return;
  const uint64_t third = least_label(lists, second, row);
  keys[row] = third << 32 | (second[row] & 0xFFFF0000u) | first[row] >> 16;
  numbers[row] = static_cast<uint32_t>(row);
}

}  // namespace

JoinOrderLayout::JoinOrderLayout(int64_t rows)
    : labels{take<uint32_t>(rows), take<uint32_t>(rows)},
      keys{take<uint64_t>(rows), take<uint64_t>(rows)},
      numbers{take<uint32_t>(rows), take<uint32_t>(rows)} {
  cub::DoubleBuffer<uint64_t> sorted;
  cub::DoubleBuffer<uint32_t> values;
  size_t needed = 0;
  KITH_CUDA_CHECK(
      cub::DeviceRadixSort::SortPairs(nullptr, needed, sorted, values, static_cast<int>(rows), 0, 64, nullptr));
  sort = take<std::byte>(static_cast<int64_t>(needed));
}

void launch_join_order(const DeviceWorkingLists& lists, const JoinOrderLayout& layout, std::byte* memory,
                       uint32_t* order, cudaStream_t stream) {
  if (lists.rows == 0 || is_counted_only(stream)) return;
  const Grid grid = Grid::over(lists.rows, kThreads);
  uint32_t* const labels[2] = {layout.labels[0].in(memory), layout.labels[1].in(memory)};
  cub::DoubleBuffer<uint64_t> keys(layout.keys[0].in(memory), layout.keys[1].in(memory));
  cub::DoubleBuffer<uint32_t> numbers(layout.numbers[0].in(memory), layout.numbers[1].in(memory));
  launch(label_kernel, grid, stream, lists, nullptr, labels[0]);
  launch(label_kernel, grid, stream, lists, labels[0], labels[1]);
  launch(key_kernel, grid, stream, lists, labels[0], labels[1], keys.Current(), numbers.Current());
  auto bytes = static_cast<size_t>(layout.sort.bytes());
  KITH_CUDA_CHECK(cub::DeviceRadixSort::SortPairs(layout.sort.in(memory), bytes, keys, numbers,
                                                  static_cast<int>(lists.rows), 0, 64, stream));
  KITH_CUDA_CHECK(
      cudaMemcpyAsync(order, numbers.Current(), static_cast<size_t>(4 * lists.rows), cudaMemcpyDeviceToDevice, stream));
}

}  // namespace kith
