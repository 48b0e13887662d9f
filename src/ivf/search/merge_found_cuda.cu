#include "ivf/search/merge_found_cuda.hpp"

#include "core/ordered_key.hpp"
#include "cuda/launch.hpp"

namespace kith {
namespace {

constexpr int kThreads = 256;

// How many of a sorted list come before an entry.
__device__ int64_t count_before(const uint64_t* list, int64_t count, uint64_t entry) {
  int64_t low = 0;
  while (low < count) {
    const int64_t middle = (low + count) / 2;
    if (list[middle] < entry) {
      low = middle + 1;
    } else {
      count = middle;
    }
  }
  return low;
}

// A thread for each entry of both lists. Padding of the first list comes behind all that is real; that of the second
// would come to the same places.
__global__ void __launch_bounds__(kThreads)
    merge_found_kernel(const uint64_t* a, const uint64_t* b, int64_t queries, int64_t k, uint64_t* out) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= 2 * queries * k) return;
  const int64_t query = i / (2 * k);
  const int64_t at = i % (2 * k);
  const bool first = at < k;
  const int64_t place = first ? at : at - k;
  const uint64_t* const own = (first ? a : b) + query * k;
  const uint64_t* const other = (first ? b : a) + query * k;
  const uint64_t entry = own[place];
  if (!first && entry == kPadding) return;
  const int64_t to = place + count_before(other, k, entry);
  if (to < k) out[query * k + to] = entry;
}

}  // namespace

void launch_merge_found(const uint64_t* a, const uint64_t* b, int64_t queries, int64_t k, uint64_t* out,
                        cudaStream_t stream) {
  launch(merge_found_kernel, Grid::over(2 * queries * k, kThreads), stream, a, b, queries, k, out);
}

}  // namespace kith
