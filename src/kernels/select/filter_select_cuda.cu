// Selection in long rows at the speed of one read: sample, filter, select.
//
// A block takes a slice of a row. The cut of a sample (filter_sample.hpp) lets a little more than k values pass; the
// slice is read once, and what passes is kept in shared memory; among that the k-th is found by bisection, and k
// entries are sorted. A slice no longer than the sample is its own sample, and nothing is estimated. Where the sample
// misled (too few passed, or more than there is room for) or the cut is a NaN, the slice is selected by radix instead:
// five more reads, the same result. Slices of one row are merged by a second kernel.
// On chip: 16 values in registers and 128 bytes of shared memory for each thread.
#include "kernels/select/select_paths_cuda.hpp"

#include "cuda/error.hpp"
#include "kernels/select/cuda_block.hpp"
#include "kernels/select/device_group_cuda.hpp"
#include "kernels/select/filter_sample.hpp"
#include "kernels/select/key_cut.hpp"
#include "kernels/select/select_value_cuda.hpp"
#include "kernels/select/sort_entries_cuda.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int kUnroll = 4;  // 16-byte loads under way in each thread

// Where a block puts what it selected: into the output, or into a list for the merge.
struct ListTarget {
  SelectOutput output;
  uint64_t* lists = nullptr;  // null: the output
  int k = 0;
  bool largest = false;
};

template <int kThreads>
struct FilterShared {
  typename BlockGroup<kThreads>::Shared group;
  typename CudaBlock<kThreads>::Shared block;
  uint32_t bound;
  int count;
};

template <int kThreads>
__device__ void write_list(const ListTarget& target, int64_t list, const uint64_t* entries, int count) {
  for (int i = static_cast<int>(threadIdx.x); i < target.k; i += kThreads) {
    const uint64_t entry = i < count ? entries[i] : kPadding;
    if (target.lists != nullptr) {
      target.lists[list * target.k + i] = entry;
    } else {
      write_selected(target.output, list * target.k + i, entry, target.largest);
    }
  }
}

// Collects what the cut keeps of all threads' entries; count is 0 before. Barriers before and after.
template <int kItems, typename RowAt>
__device__ void collect(const uint32_t (&keys)[kItems], const RowAt& row_at, const KeyCut& cut, uint64_t* list,
                        int& count) {
  int mine = 0;
  KITH_UNROLL
  for (int i = 0; i < kItems; ++i) mine += cut.keeps(keys[i], row_at(i));
  int total = mine;
  KITH_UNROLL
  for (int apart = 1; apart < 32; apart *= 2) {
    const int before = __shfl_up_sync(kAllLanes, total, apart);
    if (lane_index() >= apart) total += before;
  }
  int first = 0;
  if (lane_index() == 31 && total > 0) first = atomicAdd(&count, total);
  int place = __shfl_sync(kAllLanes, first, 31) + total - mine;
  KITH_UNROLL
  for (int i = 0; i < kItems; ++i) {
    if (cut.keeps(keys[i], row_at(i))) list[place++] = pack_neighbor(keys[i], row_at(i));
  }
}

template <int kThreads, bool kLargest>
class SliceFilter {
 public:
  static constexpr int kCapacity = kThreads * kFilterItems;

  __device__ SliceFilter(FilterShared<kThreads>& shared, uint64_t* list, const float* values, uint32_t n,
                         uint32_t first)
      : shared_(shared), group_(shared.group), list_(list), values_(values), n_(n), first_(first) {}

  // Leaves min(k, n) entries in the list and returns how many. Barriers around.
  __device__ int select(int k) {
    const int want = static_cast<uint32_t>(k) < n_ ? k : static_cast<int>(n_);
    if (want == 0) return 0;
    if (n_ <= kCapacity) {
      select_all(want);
    } else if (!filter(want)) {
      select_by_radix(want);
    }
    return want;
  }

 private:
  __device__ static float ordered(float value) { return kLargest ? -value : value; }

  __device__ void select_all(int want) {
    uint32_t keys[kFilterItems];
    const auto row_at = [&](int i) {
      const uint32_t place = static_cast<uint32_t>(i * kThreads) + threadIdx.x;
      return place < n_ ? first_ + place : kNoRow;
    };
    KITH_UNROLL
    for (int i = 0; i < kFilterItems; ++i) {
      const uint32_t place = static_cast<uint32_t>(i * kThreads) + threadIdx.x;
      keys[i] = place < n_ ? ordered_key(ordered(values_[place])) : kNanKey;
    }
    keep(keys, row_at, static_cast<int>(n_), want);
  }

  // Of `count` entries, `want` into the list.
  template <typename RowAt>
  __device__ void keep(const uint32_t (&keys)[kFilterItems], const RowAt& row_at, int count, int want) {
    const KeyCut cut = count <= want ? kKeepAll : find_cut(group_, keys, row_at, first_ + n_, {want, want});
    if (threadIdx.x == 0) shared_.count = 0;
    __syncthreads();
    collect(keys, row_at, cut, list_, shared_.count);
    __syncthreads();
  }

  __device__ KeyCut sample_cut(int want) {
    constexpr uint32_t kStrata = kCapacity / kSampleRun;
    uint32_t keys[kFilterItems];
    uint32_t rows[kFilterItems];
    KITH_UNROLL
    for (int i = 0; i < kFilterItems; ++i) {
      const uint32_t place = static_cast<uint32_t>(i * kThreads) + threadIdx.x;
      rows[i] = sample_start(place / kSampleRun, kStrata, n_) + place % kSampleRun;
    }
    KITH_UNROLL
    for (int i = 0; i < kFilterItems; ++i) keys[i] = ordered_key(ordered(values_[rows[i]]));
    const auto row_at = [&](int i) { return first_ + rows[i]; };
    return find_cut(group_, keys, row_at, first_ + n_, sample_range(static_cast<uint32_t>(want), n_, kCapacity));
  }

  __device__ bool filter(int want) {
    const KeyCut cut = sample_cut(want);
    if (cut.key == kNanKey) return false;
    if (threadIdx.x == 0) shared_.count = 0;
    __syncthreads();
    read_through(cut);
    __syncthreads();
    const int passed = shared_.count;
    if (passed < want || passed > kCapacity) return false;
    uint32_t keys[kFilterItems];
    uint32_t rows[kFilterItems];
    KITH_UNROLL
    for (int i = 0; i < kFilterItems; ++i) {
      const int place = i * kThreads + static_cast<int>(threadIdx.x);
      const uint64_t entry = place < passed ? list_[place] : kPadding;
      keys[i] = ordered_of(entry);
      rows[i] = row_of(entry);
    }
    __syncthreads();
    keep(
        keys, [&](int i) { return rows[i]; }, passed, want);
    return true;
  }

  __device__ void offer(float value, uint32_t place, const KeyCut& cut, float limit) {
    if (!(ordered(value) <= limit)) return;  // a NaN neither
    const uint32_t key = ordered_key(ordered(value));
    if (!cut.keeps(key, first_ + place)) return;
    const int slot = atomicAdd(&shared_.count, 1);
    if (slot < kCapacity) list_[slot] = pack_neighbor(key, first_ + place);
  }

  // The nearest of four; a NaN only where all are.
  __device__ static float nearest(const float4& v) {
    return kLargest ? -fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)) : fminf(fminf(v.x, v.y), fminf(v.z, v.w));
  }

  __device__ void offer(const float4& v, uint32_t place, const KeyCut& cut, float limit) {
    offer(v.x, place, cut, limit);
    offer(v.y, place + 1, cut, limit);
    offer(v.z, place + 2, cut, limit);
    offer(v.w, place + 3, cut, limit);
  }

  __device__ void read_through(const KeyCut& cut) {
    const float limit = key_of_ordered(cut.key);
    const uint32_t misaligned = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(values_) / sizeof(float) % 4);
    const uint32_t head = (4 - misaligned) % 4;  // n is larger
    const uint32_t quads = (n_ - head) / 4;
    const uint32_t tail = head + 4 * quads;
    if (threadIdx.x < head) offer(values_[threadIdx.x], threadIdx.x, cut, limit);
    if (tail + threadIdx.x < n_) offer(values_[tail + threadIdx.x], tail + threadIdx.x, cut, limit);

    const float4* const body = reinterpret_cast<const float4*>(values_ + head);
    uint32_t quad = threadIdx.x;
    for (; quad + (kUnroll - 1) * kThreads < quads; quad += kUnroll * kThreads) {
      float4 v[kUnroll];
      float best[kUnroll];
      KITH_UNROLL
      for (int i = 0; i < kUnroll; ++i) v[i] = __ldcs(body + quad + i * kThreads);
      KITH_UNROLL
      for (int i = 0; i < kUnroll; ++i) best[i] = nearest(v[i]);
      if (!(fminf(fminf(best[0], best[1]), fminf(best[2], best[3])) <= limit)) continue;
      KITH_UNROLL
      for (int i = 0; i < kUnroll; ++i) {
        if (best[i] <= limit) offer(v[i], head + 4 * (quad + i * kThreads), cut, limit);
      }
    }
    for (; quad < quads; quad += kThreads) {
      const float4 v = __ldcs(body + quad);
      if (nearest(v) <= limit) offer(v, head + 4 * quad, cut, limit);
    }
  }

  __device__ void select_by_radix(int want) {
    CudaBlock<kThreads> block(shared_.block);
    const ValueSelectTask task{list_, &shared_.bound, {values_, kLargest}, n_, 0, want, first_};
    __syncthreads();
    BlockSelector<CudaBlock<kThreads>, ValueSelectTask>(block, task).run();
    __syncthreads();
  }

  FilterShared<kThreads>& shared_;
  BlockGroup<kThreads> group_;
  uint64_t* list_;
  const float* values_;
  uint32_t n_;
  uint32_t first_;
};

template <int kThreads, bool kLargest>
__global__ void __launch_bounds__(kThreads, 1024 / kThreads)
    filter_kernel(SelectInput input, ListTarget target, int64_t slices, int64_t slice_length) {
  extern __shared__ uint64_t list[];
  __shared__ FilterShared<kThreads> shared;
  const int64_t row = blockIdx.x / slices;
  const int64_t begin = blockIdx.x % slices * slice_length;
  const int64_t rest = row_length(input, row) - begin;
  const uint32_t n = rest <= 0 ? 0 : static_cast<uint32_t>(rest < slice_length ? rest : slice_length);
  SliceFilter<kThreads, kLargest> slice(shared, list, input.values + row * input.row_stride + begin, n,
                                        static_cast<uint32_t>(begin));
  const int count = slice.select(target.k);
  const uint64_t* result = list;
  if (target.lists == nullptr) {
    result = sort_entries<kThreads>(list, list + SliceFilter<kThreads, kLargest>::kCapacity / 2, count);
  }
  write_list<kThreads>(target, blockIdx.x, result, count);
}

// Block b selects k among the `fan` lists (or as many as are left) of group b % groups of row b / groups.
__global__ void __launch_bounds__(kMergeThreads)
    merge_kernel(const uint64_t* lists, int64_t lists_per_row, int64_t groups, int64_t fan, ListTarget target) {
  __shared__ uint64_t kept[2 * kFilterLargestK];
  __shared__ typename BlockGroup<kMergeThreads>::Shared group_shared;
  __shared__ int count;
  const int64_t row = blockIdx.x / groups;
  const int64_t first = blockIdx.x % groups * fan;
  const int64_t have = min(fan, lists_per_row - first) * target.k;
  const uint64_t* const entries = lists + (row * lists_per_row + first) * target.k;
  uint32_t keys[kFilterItems];
  uint32_t rows[kFilterItems];
  int real = 0;
  KITH_UNROLL
  for (int i = 0; i < kFilterItems; ++i) {
    const int place = i * kMergeThreads + static_cast<int>(threadIdx.x);
    const uint64_t entry = place < have ? entries[place] : kPadding;
    keys[i] = ordered_of(entry);
    rows[i] = row_of(entry);
    real += entry != kPadding;
  }
  if (threadIdx.x == 0) count = 0;
  BlockGroup<kMergeThreads> group(group_shared);
  real = group.sum(real);
  const int want = min(target.k, real);
  const auto row_at = [&](int i) { return rows[i]; };
  const KeyCut cut = real <= want ? kKeepAll : find_cut(group, keys, row_at, kLastRow, {want, want});
  __syncthreads();
  collect(keys, row_at, cut, kept, count);
  __syncthreads();
  const uint64_t* result = kept;
  if (target.lists == nullptr) result = sort_entries<kMergeThreads>(kept, kept + kFilterLargestK, want);
  write_list<kMergeThreads>(target, blockIdx.x, result, want);
}

template <int kThreads, bool kLargest>
void launch_filter(const SelectCall& call, const ListTarget& target, cudaStream_t stream) {
  constexpr int kBytes = SliceFilter<kThreads, kLargest>::kCapacity * sizeof(uint64_t);
  KITH_CUDA_CHECK(
      cudaFuncSetAttribute(filter_kernel<kThreads, kLargest>, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
  filter_kernel<kThreads, kLargest>
      <<<static_cast<unsigned>(call.input.rows * call.plan.slices), kThreads, kBytes, stream>>>(
          call.input, target, call.plan.slices, call.plan.slice_length);
  KITH_CUDA_CHECK_LAUNCH("filter_kernel");
}

template <int kThreads>
void launch_ordered(const SelectCall& call, const ListTarget& target, cudaStream_t stream) {
  return call.largest ? launch_filter<kThreads, true>(call, target, stream)
                      : launch_filter<kThreads, false>(call, target, stream);
}

}  // namespace

void launch_filter_select(const SelectCall& call, cudaStream_t stream) {
  const bool merges = call.plan.slices > 1;
  uint64_t* from = merges ? call.workspace : nullptr;
  const ListTarget target{call.output, from, static_cast<int>(call.k), call.largest};
  if (call.plan.threads == 256) {
    launch_ordered<256>(call, target, stream);
  } else {
    launch_ordered<512>(call, target, stream);
  }
  // The lists of a level lie behind those of the level before, then take their place in turn.
  uint64_t* to = call.workspace + call.input.rows * call.plan.slices * call.k;
  const int64_t fan = kMergeCapacity / call.k;
  for (int64_t lists = call.plan.slices; lists > 1;) {
    const int64_t groups = (lists + fan - 1) / fan;
    ListTarget level = target;
    level.lists = groups > 1 ? to : nullptr;
    merge_kernel<<<static_cast<unsigned>(call.input.rows * groups), kMergeThreads, 0, stream>>>(from, lists, groups,
                                                                                                fan, level);
    KITH_CUDA_CHECK_LAUNCH("merge_kernel");
    std::swap(from, to);
    lists = groups;
  }
}

}  // namespace kith
