#include "kernels/select/sort_pairs_cuda.hpp"

#include "core/memory_budget.hpp"
#include "cuda/error.hpp"

#include <cub/device/device_radix_sort.cuh>

namespace kith {

int64_t sort_pairs_bytes(int64_t count) {
  cub::DoubleBuffer<uint32_t> keys;
  cub::DoubleBuffer<uint32_t> values;
  size_t bytes = 0;
  KITH_CUDA_CHECK(cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, values, count));
  return static_cast<int64_t>(bytes);
}

int launch_sort_pairs(const SortPairsTask& task, cudaStream_t stream) {
  if (task.count == 0 || is_counted_only(stream)) return 0;
  cub::DoubleBuffer<uint32_t> keys(task.keys[0], task.keys[1]);
  cub::DoubleBuffer<uint32_t> values(task.values[0], task.values[1]);
  auto bytes = static_cast<size_t>(sort_pairs_bytes(task.count));
  KITH_CUDA_CHECK(cub::DeviceRadixSort::SortPairs(task.memory, bytes, keys, values, task.count, 0, task.bits, stream));
  return values.selector;
}

}  // namespace kith
