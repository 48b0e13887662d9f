#include "graph/nn_descent/join_order_cuda.hpp"

#include "core/divide.hpp"
#include "core/ordered_key.hpp"
#include "cuda/error.hpp"
#include "graph/nn_descent/join_rules.hpp"

#include <cub/device/device_radix_sort.cuh>

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kNearest = 8;  // neighbours that a label is taken of

// Of generation 0, where there are no labels yet.
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
__global__ void __launch_bounds__(kThreads)
    key_kernel(DeviceWorkingLists lists, const uint32_t* first, const uint32_t* second, uint64_t* keys, uint32_t* numbers) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (row >= lists.rows) return;
  const uint64_t third = least_label(lists, second, row);
  keys[row] = third << 32 | (second[row] & 0xFFFF0000u) | first[row] >> 16;
  numbers[row] = static_cast<uint32_t>(row);
}

}  // namespace

JoinOrderLayout::JoinOrderLayout(int64_t rows)
    : labels{take(rows, 4), take(rows, 4)}, keys{take(rows, 8), take(rows, 8)}, numbers{take(rows, 4), take(rows, 4)} {
  cub::DoubleBuffer<uint64_t> sorted;
  cub::DoubleBuffer<uint32_t> values;
  size_t needed = 0;
  KITH_CUDA_CHECK(cub::DeviceRadixSort::SortPairs(nullptr, needed, sorted, values, static_cast<int>(rows), 0, 64, nullptr));
  sort_bytes = static_cast<int64_t>(needed);
  sort = take(sort_bytes, 1);
}

void launch_join_order(const DeviceWorkingLists& lists, const JoinOrderLayout& layout, std::byte* memory, uint32_t* order,
                       cudaStream_t stream) {
  if (lists.rows == 0) return;
  const auto blocks = static_cast<unsigned>(divide_up(lists.rows, int64_t{kThreads}));
  uint32_t* const labels[2] = {reinterpret_cast<uint32_t*>(memory + layout.labels[0]),
                               reinterpret_cast<uint32_t*>(memory + layout.labels[1])};
  cub::DoubleBuffer<uint64_t> keys(reinterpret_cast<uint64_t*>(memory + layout.keys[0]),
                                   reinterpret_cast<uint64_t*>(memory + layout.keys[1]));
  cub::DoubleBuffer<uint32_t> numbers(reinterpret_cast<uint32_t*>(memory + layout.numbers[0]),
                                      reinterpret_cast<uint32_t*>(memory + layout.numbers[1]));
  label_kernel<<<blocks, kThreads, 0, stream>>>(lists, nullptr, labels[0]);
  KITH_CUDA_CHECK_LAUNCH("label_kernel");
  label_kernel<<<blocks, kThreads, 0, stream>>>(lists, labels[0], labels[1]);
  KITH_CUDA_CHECK_LAUNCH("label_kernel");
  key_kernel<<<blocks, kThreads, 0, stream>>>(lists, labels[0], labels[1], keys.Current(), numbers.Current());
  KITH_CUDA_CHECK_LAUNCH("key_kernel");
  auto bytes = static_cast<size_t>(layout.sort_bytes);
  KITH_CUDA_CHECK(cub::DeviceRadixSort::SortPairs(memory + layout.sort, bytes, keys, numbers,
                                                  static_cast<int>(lists.rows), 0, 64, stream));
  KITH_CUDA_CHECK(cudaMemcpyAsync(order, numbers.Current(), static_cast<size_t>(4 * lists.rows), cudaMemcpyDeviceToDevice,
                                  stream));
}

}  // namespace kith
