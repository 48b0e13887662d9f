// Selection in long rows at the speed of one read: sample, filter, select.
//
// A block takes a slice of a row. The cut of a sample (filter_sample.hpp) lets a little more than k values pass; the
// slice is read once, and what passes is kept in shared memory; among that the k-th is found by bisection, and k
// entries are sorted. A slice no longer than the sample is its own sample, and nothing is estimated. Where the sample
// misled (too few passed, or more than there is room for) or the cut is a NaN, the slice is selected by radix instead:
// five more reads, the same result. Slices of one row are merged by a second kernel.
// On chip: 16 values in registers and 128 bytes of shared memory for each thread.
#include "core/divide.hpp"
#include "cuda/error.hpp"
#include "cuda/launch.hpp"
#include "cuda/vector_access.hpp"
#include "kernels/select/cuda_block.hpp"
#include "kernels/select/device_group_cuda.hpp"
#include "kernels/select/filter_sample.hpp"
#include "kernels/select/key_cut.hpp"
#include "kernels/select/select_rows_cuda.hpp"
#include "kernels/select/select_value_cuda.hpp"
#include "kernels/select/sort_in_place_cuda.hpp"

#include <algorithm>
#include <cstdint>

namespace kith {
namespace {

// Sorts up to 8 * kThreads different entries in shared memory with one block, with room beside them for as many
// (sort_in_place_cuda.hpp does without).
//
// Each warp sorts a run in registers; then pairs of runs are merged, every entry finding its place by a binary search
// in the other run. O(n log^2(run)) moves and O(n log(runs) log(n)) reads.
template <int kThreads>
__device__ inline void merge_runs(const uint64_t* from, uint64_t* to, int run_bits, int count) {
  const int run = 1 << run_bits;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) {
    const int mine = i >> run_bits;
    const int other = (mine ^ 1) << run_bits;
    const int length = min(max(count - other, 0), run);
    const uint64_t entry = from[i];
    to[min(mine << run_bits, other) + (i & (run - 1)) + rank_in_list(from + other, length, entry)] = entry;
  }
}

// Returns which of the two arrays holds the result; both have room for `count`. Every thread of the block calls it,
// after a barrier; there is one at the end.
template <int kThreads>
__device__ inline uint64_t* sort_entries(uint64_t* list, uint64_t* spare, int count) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  int run_bits = 5;
  while ((kThreads / 32) << run_bits < count) ++run_bits;
  switch (run_bits) {
    case 5: sort_run<1>(list, 32 * warp, count); break;
    case 6: sort_run<2>(list, 64 * warp, count); break;
    case 7: sort_run<4>(list, 128 * warp, count); break;
    default: sort_run<8>(list, 256 * warp, count); break;
  }
  __syncthreads();
  for (; 1 << run_bits < count; ++run_bits) {
    merge_runs<kThreads>(list, spare, run_bits, count);
    uint64_t* const merged = spare;
    spare = list;
    list = merged;
    __syncthreads();
  }
  return list;
}

constexpr int kUnroll = 4;  // 16-byte loads in flight per thread

// Destination of a block's selection: the output, or a list for the merge.
struct ListTarget {
  SelectOutput output;
  uint64_t* lists = nullptr;  // null: the output
  int k = 0;
  bool largest = false;
};

__device__ int most_sorted(int k) { return min(k + k / 16, static_cast<int>(kFilterLargestK)); }

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

template <typename RowAt>
__device__ RowsAt<kFilterItems, RowAt> rows_of(const RowAt& row_at) {
  return {row_at};
}

// Collects the entries that the cut keeps; count must be 0. Includes barriers before and after.
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

  // Leaves the min(k, n) smallest entries in the list, among at most `most` (k or more), and returns how many there
  // are. Barriers around.
  __device__ int select(int k, int most) {
    const int want = static_cast<uint32_t>(k) < n_ ? k : static_cast<int>(n_);
    if (want == 0) return 0;
    if (n_ <= kCapacity) {
      select_all({want, most});
    } else if (!filter({want, most})) {
      select_by_radix(want);
      return want;
    }
    return shared_.count;
  }

 private:
  __device__ static float ordered(float value) { return kLargest ? -value : value; }

  __device__ void select_all(const KeepRange& range) {
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
    keep(keys, row_at, static_cast<int>(n_), range);
  }

  // Keeps from `count` entries as many as `range` says in the list.
  template <typename RowAt>
  __device__ void keep(const uint32_t (&keys)[kFilterItems], const RowAt& row_at, int count, const KeepRange& range) {
    const KeyCut cut = count <= range.most ? kKeepAll : find_cut(group_, keys, rows_of(row_at), first_ + n_, range);
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
    return find_cut(group_, keys, rows_of(row_at), first_ + n_,
                    sample_range(static_cast<uint32_t>(want), n_, kCapacity));
  }

  __device__ bool filter(const KeepRange& range) {
    const KeyCut cut = sample_cut(range.least);
    if (cut.key == kNanKey) return false;
    if (threadIdx.x == 0) shared_.count = 0;
    __syncthreads();
    read_through(cut);
    __syncthreads();
    const int passed = shared_.count;
    if (passed < range.least || passed > kCapacity) return false;
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
        keys, [&](int i) { return rows[i]; }, passed, range);
    return true;
  }

  // What may pass at a column: values up to `limit`, and after the cut's row only those below it. Rows of many equal
  // values are so rejected by one comparison, too.
  struct Limits {
    KeyCut cut;
    float limit;
    float below;

    __device__ explicit Limits(const KeyCut& sample_cut) : cut(sample_cut), limit(key_of_ordered(cut.key)) {
      constexpr uint32_t kZero = 0x80000000u;  // its lower neighbour is -0.0, which equals it
      below = key_of_ordered(cut.key - (cut.key == kZero ? 2 : 1));
    }
    __device__ float at(uint32_t column) const { return column > cut.row ? below : limit; }
  };

  __device__ void store(int slot, float value, uint32_t place) {
    if (slot < kCapacity) list_[slot] = pack_neighbor(ordered_key(ordered(value)), first_ + place);
  }

  __device__ void offer(uint32_t place, const Limits& limits) {
    const float value = values_[place];
    if (ordered(value) <= limits.at(first_ + place)) store(atomicAdd(&shared_.count, 1), value, place);  // a NaN not
  }

  // The smallest of four; NaN only if all are.
  __device__ static float nearest(const float4& v) {
    return kLargest ? -fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)) : fminf(fminf(v.x, v.y), fminf(v.z, v.w));
  }

  // Bit e: element e of the quad at `place` passes.
  __device__ uint32_t passing(const float4& v, uint32_t place, const Limits& limits) const {
    const uint32_t column = first_ + place;
    const float limit = limits.at(column);
    uint32_t bits = (ordered(v.x) <= limit ? 1u : 0u) | (ordered(v.y) <= limit ? 2u : 0u) |
                    (ordered(v.z) <= limit ? 4u : 0u) | (ordered(v.w) <= limit ? 8u : 0u);
    if (column <= limits.cut.row && limits.cut.row < column + 3) {  // the cut goes through this quad
      if (!(ordered(v.y) <= limits.at(column + 1))) bits &= ~2u;
      if (!(ordered(v.z) <= limits.at(column + 2))) bits &= ~4u;
      if (!(ordered(v.w) <= limits.at(column + 3))) bits &= ~8u;
    }
    return bits;
  }

  // Stores what passes of the warp's quads, bit 4 i + e of `hits` for element e of quad i: one atomic for one hit of
  // every lane. The values are read again, from the cache, as registers cannot be indexed.
  __device__ void store_hits(uint32_t hits, uint32_t place) {
    while (true) {
      const uint32_t lanes = __ballot_sync(kAllLanes, hits != 0);
      if (lanes == 0) return;
      int first = 0;
      if (lane_index() == 0) first = atomicAdd(&shared_.count, __popc(lanes));
      first = __shfl_sync(kAllLanes, first, 0);
      if (hits == 0) continue;
      const uint32_t bit = static_cast<uint32_t>(__ffs(static_cast<int>(hits))) - 1;
      hits &= hits - 1;
      const uint32_t hit = place + bit / 4 * 4 * kThreads + bit % 4;
      store(first + __popc(lanes & ((1u << lane_index()) - 1)), values_[hit], hit);
    }
  }

  __device__ void read_through(const KeyCut& cut) {
    const Limits limits(cut);
    const uint32_t misaligned = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(values_) / sizeof(float) % 4);
    const uint32_t head = (4 - misaligned) % 4;  // less than n
    const uint32_t quads = (n_ - head) / 4;
    const float4* const body = vectors<float4>(values_ + head) + threadIdx.x;
    uint32_t done = 0;
    for (; done + kUnroll * kThreads <= quads; done += kUnroll * kThreads) {
      const uint32_t place = head + 4 * (done + threadIdx.x);
      float4 v[kUnroll];
      bool near = false;
      KITH_UNROLL
      for (int i = 0; i < kUnroll; ++i) v[i] = __ldcs(body + done + i * kThreads);
      KITH_UNROLL
      for (int i = 0; i < kUnroll; ++i) near |= nearest(v[i]) <= limits.at(first_ + place + 4 * i * kThreads);
      if (!__any_sync(kAllLanes, near)) continue;
      uint32_t hits = 0;
      KITH_UNROLL
      for (int i = 0; i < kUnroll; ++i) hits |= passing(v[i], place + 4 * i * kThreads, limits) << (4 * i);
      store_hits(hits, place);
    }
    // The values before the first whole quad and those after the last whole round.
    if (threadIdx.x < head) offer(threadIdx.x, limits);
    for (uint32_t place = head + 4 * done + threadIdx.x; place < n_; place += kThreads) offer(place, limits);
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
  // A list for the merge has exactly k entries; sorting may include a few more.
  const bool last = target.lists == nullptr;
  const int count = slice.select(target.k, last ? most_sorted(target.k) : target.k);
  const uint64_t* result = list;
  if (last) {
    result = sort_entries<kThreads>(list, list + SliceFilter<kThreads, kLargest>::kCapacity / 2, count);
  }
  write_list<kThreads>(target, blockIdx.x, result, count);
}

// Block b selects k among the `fan` lists, or fewer at the end, of group b % groups of row b / groups.
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
  const KeyCut cut = real <= want ? kKeepAll : find_cut(group, keys, rows_of(row_at), kLastRow, {want, want});
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
  launch(filter_kernel<kThreads, kLargest>, Grid::of(call.input.rows * call.plan.slices, kThreads).with_shared(kBytes),
         stream, call.input, target, call.plan.slices, call.plan.slice_length);
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
  if (call.plan.threads == 128) {
    launch_ordered<128>(call, target, stream);
  } else if (call.plan.threads == 256) {
    launch_ordered<256>(call, target, stream);
  } else {
    launch_ordered<512>(call, target, stream);
  }
  // The lists of a level are written after those of the level before, then in their place, alternately.
  uint64_t* to = call.workspace + call.input.rows * call.plan.slices * call.k;
  const int64_t fan = kMergeCapacity / call.k;
  for (int64_t lists = call.plan.slices; lists > 1;) {
    const int64_t groups = divide_up(lists, fan);
    ListTarget level = target;
    level.lists = groups > 1 ? to : nullptr;
    launch(merge_kernel, Grid::of(call.input.rows * groups, kMergeThreads), stream, from, lists, groups, fan, level);
    std::swap(from, to);
    lists = groups;
  }
}

}  // namespace kith
