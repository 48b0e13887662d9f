#include "ivf/scan/prepare_lists_cuda.hpp"

#include "cuda/device_core.hpp"
#include "cuda/error.hpp"
#include "cuda/launch.hpp"
#include "cuda/vector_access.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kCounters = 8192;
constexpr int kGroups = 1024;  // of equal codes: at most 65,536 / kLeastRepeats are large
constexpr int64_t kMostLength = 65536;
constexpr uint32_t kNone = 0xFFFFFFFFu;

// Of one list, by a block.
class ListCodes {
 public:
  __device__ ListCodes(const DeviceListsView& lists, int64_t list, int64_t code_bytes)
      : codes_(lists.codes + lists.offsets[list] * code_bytes),
        rows_(lists.rows + lists.offsets[list]),
        length_(lists.offsets[list + 1] - lists.offsets[list]),
        bytes_(static_cast<int>(code_bytes)),
        words_(code_bytes % 4 == 0 && reinterpret_cast<uintptr_t>(lists.codes) % 4 == 0) {}

  __device__ bool is_looked_at() const { return length_ >= int64_t{kLeastRepeats} && length_ <= kMostLength; }
  __device__ int length() const { return static_cast<int>(length_); }
  __device__ uint32_t row(int i) const { return rows_[i]; }

  __device__ uint32_t hash(int i) const {
    const uint8_t* const code = codes_ + static_cast<int64_t>(i) * bytes_;
    uint64_t sum = 0;
    if (words_) {
      for (int word = 0; word < bytes_ / 4; ++word) {
        sum = (sum ^ vectors<uint32_t>(code)[word]) * 0x9E3779B97F4A7C15u;
        sum ^= sum >> 29;
      }
    } else {
      for (int byte = 0; byte < bytes_; ++byte) sum = (sum ^ code[byte]) * 0x9E3779B97F4A7C15u ^ sum >> 29;
    }
    return static_cast<uint32_t>(sum >> 32);
  }

  __device__ bool equal(int a, int b) const {
    const uint8_t* const left = codes_ + static_cast<int64_t>(a) * bytes_;
    const uint8_t* const right = codes_ + static_cast<int64_t>(b) * bytes_;
    for (int byte = 0; byte < bytes_; ++byte) {
      if (left[byte] != right[byte]) return false;
    }
    return true;
  }

 private:
  const uint8_t* codes_;
  const uint32_t* rows_;
  int64_t length_;
  int bytes_;
  bool words_;
};

// Fills the counters; returns the largest that this thread's codes meet. All threads.
__device__ uint32_t count_codes(const ListCodes& codes, uint32_t* counters) {
  for (int i = static_cast<int>(threadIdx.x); i < kCounters; i += kThreads) counters[i] = 0;
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < codes.length(); i += kThreads) {
    atomicAdd(&counters[codes.hash(i) % kCounters], 1u);
  }
  __syncthreads();
  uint32_t most = 0;
  for (int i = static_cast<int>(threadIdx.x); i < kCounters; i += kThreads) most = max(most, counters[i]);
  return most;
}

__global__ void __launch_bounds__(kThreads)
    count_repeats_kernel(const __grid_constant__ DeviceListsView lists, int64_t code_bytes, uint32_t* most) {
  __shared__ uint32_t counters[kCounters];
  const ListCodes codes(lists, blockIdx.x, code_bytes);
  if (!codes.is_looked_at()) return;
  const uint32_t mine = __reduce_max_sync(0xFFFFFFFFu, count_codes(codes, counters));
  if (threadIdx.x % 32 == 0) atomicMax(most, mine);
}

// The group of the code, or kNone where there is no place for another; by any threads at once.
__device__ uint32_t find_group(const ListCodes& codes, int i, uint32_t hash, uint32_t* firsts) {
  for (uint32_t step = 0; step < kGroups; ++step) {
    const uint32_t group = (hash / kCounters + step) % kGroups;
    const uint32_t other = atomicCAS(&firsts[group], kNone, static_cast<uint32_t>(i));
    if (other == kNone || codes.equal(static_cast<int>(other), i)) return group;
  }
  return kNone;
}

__global__ void __launch_bounds__(kThreads)
    rank_repeats_kernel(const __grid_constant__ DeviceListsView lists, int64_t code_bytes, uint16_t* ranks) {
  __shared__ uint32_t counters[kCounters];
  __shared__ uint32_t firsts[kGroups];   // a member of each group
  __shared__ uint32_t members[kGroups];  // so far
  __shared__ uint32_t groups[kThreads];
  const auto thread = static_cast<int>(threadIdx.x);
  const ListCodes codes(lists, blockIdx.x, code_bytes);
  if (!codes.is_looked_at()) return;
  if (!__syncthreads_or(count_codes(codes, counters) >= kLeastRepeats)) return;
  // Ranks are by the order of rows, which lists of an index have; for others nothing is said.
  bool ordered = true;
  for (int i = thread + 1; i < codes.length(); i += kThreads) ordered = ordered && codes.row(i - 1) < codes.row(i);
  if (!__syncthreads_and(ordered)) return;
  for (int i = thread; i < kGroups; i += kThreads) {
    firsts[i] = kNone;
    members[i] = 0;
  }
  __syncthreads();
  for (int first = 0; first < codes.length(); first += kThreads) {
    const int i = first + thread;
    uint32_t group = kNone;
    if (i < codes.length()) {
      const uint32_t hash = codes.hash(i);
      if (counters[hash % kCounters] >= kLeastRepeats) group = find_group(codes, i, hash, firsts);
    }
    groups[thread] = group;
    __syncthreads();
    uint32_t before = 0;
    if (group != kNone) {
      before = members[group];
      for (int other = 0; other < thread; ++other) before += groups[other] == group;
    }
    __syncthreads();
    if (group != kNone) {
      atomicAdd(&members[group], 1u);
      ranks[lists.offsets[blockIdx.x] + i] = static_cast<uint16_t>(min(before, 65535u));
    }
    __syncthreads();
  }
}

}  // namespace

void launch_count_repeats(const DeviceListsView& lists, uint32_t* most, cudaStream_t stream) {
  if (lists.count == 0) return;
  launch(count_repeats_kernel, Grid::of(lists.lists, kThreads), stream, lists, lists.codec.format.bytes(), most);
}

void launch_rank_repeats(const DeviceListsView& lists, uint16_t* ranks, cudaStream_t stream) {
  if (lists.count == 0) return;
  KITH_CUDA_CHECK(cudaMemsetAsync(ranks, 0, static_cast<size_t>(lists.count) * sizeof(uint16_t), stream));
  launch(rank_repeats_kernel, Grid::of(lists.lists, kThreads), stream, lists, lists.codec.format.bytes(), ranks);
}

}  // namespace kith
