// What a round of NN-Descent looks up before its joins: samples of all lists, which rows they hold, and who meets. A
// warp for each list; one read of the lists.
#include "core/divide.hpp"
#include "cuda/launch.hpp"
#include "cuda/shared_memory.hpp"
#include "graph/build/nn_descent/join_cuda.hpp"
#include "graph/build/nn_descent/join_rules.hpp"
#include "kernels/select/device_warp_cuda.hpp"

namespace kith {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

// `from` has sampled `to`: of all in a bucket the one with the smallest hash stays.
__device__ void name_sample(uint32_t* reverse, int64_t samples, uint32_t from, uint32_t to, uint64_t salt) {
  uint32_t* const bucket = reverse + place_of(pair_hash(salt, from, to), samples);
  uint32_t there = __ldcg(bucket);
  while (replaces(salt, to, from, there)) {
    const uint32_t found = atomicCAS(bucket, there, from);
    if (found == there) return;
    there = found;
  }
}

__global__ void __launch_bounds__(kThreads)
    sample_kernel(DeviceListsRef lists, DeviceSamples samples, int64_t boundary, uint64_t salt) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (row >= lists.rows) return;
  const unsigned before = (1u << lane_index()) - 1;
  uint64_t* const list = lists.entries + row * lists.length;
  int64_t counts[2] = {0, 0};  // NEW, OLD
  for (int64_t first = 0; first < lists.length; first += 32) {
    const int64_t j = first + lane_index();
    const uint64_t entry = j < lists.length ? list[j] : kPadding;
    if (!__any_sync(kAllLanes, entry != kPadding)) break;
    const uint32_t other = row_of(without_flag(entry));
    const bool old = entry != kPadding && is_old(entry);
    const bool there = entry != kPadding && !(old && boundary > 0 && (other < boundary) != (row < boundary));
    const unsigned olds = __ballot_sync(kAllLanes, there && old);
    const unsigned news = __ballot_sync(kAllLanes, there && !old);
    const int64_t rank = (old ? counts[1] : counts[0]) + __popc((old ? olds : news) & before);
    counts[0] += __popc(news);
    counts[1] += __popc(olds);
    if (!there || rank >= samples.samples) continue;
    const int64_t kind = old ? 1 : 0;
    samples.forward(row, kind)[rank] = other;
    if (!old) list[j] = entry | kOldFlag;
    name_sample(samples.reverse(other, kind), samples.samples, static_cast<uint32_t>(row), other, salt);
  }
}

// The buckets of a list are filled in shared memory first. A warp for each list.
__global__ void __launch_bounds__(kThreads) know_kernel(DeviceListsRef lists, KnownRows known) {
  extern __shared__ uint32_t memory[];
  const int warps = static_cast<int>(blockDim.x) / 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * warps + warp;
  if (row >= lists.rows) return;
  const int buckets = 1 << known.bits;
  uint32_t* const places = memory + warp * buckets * (kBucketRows + 1);
  uint32_t* const counts = places + buckets * kBucketRows;
  for (int i = lane_index(); i < buckets * kBucketRows; i += 32) places[i] = kNobody;
  for (int i = lane_index(); i < buckets; i += 32) counts[i] = 0;
  __syncwarp();
  const uint64_t* const list = lists.entries + row * lists.length;
  for (int64_t j = lane_index(); j < lists.length; j += 32) {
    const uint64_t entry = list[j];
    if (entry == kPadding) break;
    const uint32_t other = row_of(without_flag(entry));
    const auto bucket = static_cast<int>(known.bucket(0, other));
    const uint32_t place = atomicAdd(counts + bucket / kBucketRows, 1u);
    if (place < kBucketRows) places[bucket + static_cast<int>(place)] = other;
  }
  __syncwarp();
  for (int i = lane_index(); i < buckets; i += 32) {
    if (counts[i] > kBucketRows) places[i * kBucketRows + kBucketRows - 1] = kMoreRows;
  }
  __syncwarp();
  uint32_t* const out = known.buckets + row * buckets * kBucketRows;
  for (int i = lane_index(); i < buckets * kBucketRows; i += 32) out[i] = places[i];
}

constexpr int kCollectWarps = 8;
constexpr int kNoJoin = kJoinSizes;

// Size of the hash table that finds duplicates: a power of two, at least twice the number of samples.
constexpr int sample_table_bits(int64_t samples) {
  int bits = 5;
  while ((int64_t{1} << bits) < 8 * samples) ++bits;
  return bits;
}

// Whether it is the first of that number.
__device__ bool enter_table(uint32_t* table, int bits, uint32_t number) {
  const uint32_t mask = (1u << bits) - 1;
  for (uint32_t place = (number * 0x9E3779B1u) >> (32 - bits);; place = (place + 1) & mask) {
    const uint32_t there = atomicCAS(table + place, kNobody, number);
    if (there == kNobody) return true;
    if (there == number) return false;
  }
}

// A warp per row. A NEW sample is not OLD. Remaining samples move to the front, to places that have been read.
__device__ JoinCounts collect(const CollectTask& task, int64_t row, uint32_t* table, int bits) {
  const auto places = static_cast<int>(2 * task.samples.samples);  // of a kind
  uint32_t* const numbers = task.samples.collected(row);
  for (int i = lane_index(); i < 1 << bits; i += 32) table[i] = kNobody;
  __syncwarp();
  int counts[2] = {0, 0};
  int all = 0;
  for (int kind = 0; kind < 2; ++kind) {
    for (int first = 0; first < places; first += 32) {
      const int place = first + lane_index();
      const uint32_t number = place < places ? numbers[kind * places + place] : kNobody;
      bool stays = number != kNobody;
      if (stays) stays = enter_table(table, bits, number);
      const unsigned lanes = __ballot_sync(kAllLanes, stays);
      __syncwarp();
      if (stays) numbers[all + __popc(lanes & ((1u << lane_index()) - 1))] = number;
      all += __popc(lanes);
      counts[kind] += __popc(lanes);
    }
    if (all == 0) break;  // no NEW ones, no join
    __syncwarp();         // all NEW ones are in the table
  }
  return {counts[0], counts[1]};
}

__global__ void __launch_bounds__(32 * kCollectWarps)
    collect_kernel(const __grid_constant__ CollectTask task, int bits) {
  extern __shared__ uint32_t tables[];
  __shared__ uint32_t rows[kCollectWarps];
  __shared__ uint32_t packed[kCollectWarps];
  const int warps = static_cast<int>(blockDim.x) / 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t place = static_cast<int64_t>(blockIdx.x) * warps + warp;
  JoinCounts counts;
  int64_t row = 0;
  if (place < task.rows) {
    row = task.order == nullptr ? task.first + place : task.order[task.first + place];
    counts = collect(task, row, tables + (warp << bits), bits);
  }
  if (lane_index() == 0) {
    if (place < task.rows) task.samples.counts[row] = counts.packed();
    rows[warp] = static_cast<uint32_t>(row);
    packed[warp] = counts.packed();
  }
  __syncthreads();
  if (warp > 0 || task.joins.rows == nullptr) return;
  const JoinCounts mine = unpack_counts(lane_index() < warps ? packed[lane_index()] : 0);
  const bool meets = mine.meet(task.across);
  const int size =
      !meets ? kNoJoin : static_cast<int>(task.sizes ? size_of(shape_of(mine, task.across)) : JoinSize::large);
  for (int of_size = 0; of_size < kJoinSizes; ++of_size) {
    const unsigned lanes = __ballot_sync(kAllLanes, size == of_size);
    if (lanes == 0) continue;
    uint32_t base = 0;
    if (lane_index() == 0) base = atomicAdd(task.joins.counts + of_size, static_cast<uint32_t>(__popc(lanes)));
    base = __shfl_sync(kAllLanes, base, 0);
    if (size == of_size) {
      task.joins.rows[of_size * task.rows + base + __popc(lanes & ((1u << lane_index()) - 1))] = rows[lane_index()];
    }
  }
  const unsigned pairs = __reduce_add_sync(kAllLanes, meets ? static_cast<unsigned>(mine.pairs(task.across)) : 0u);
  if (lane_index() == 0 && pairs > 0) {
    atomicAdd(task.pairs + blockIdx.x % kCounters, static_cast<unsigned long long>(pairs));
  }
}

}  // namespace

void launch_sample_lists(const DeviceListsRef& lists, const DeviceSamples& samples, int64_t boundary, uint64_t salt,
                         cudaStream_t stream) {
  launch(sample_kernel, Grid::of(divide_up(lists.rows, kWarps), kThreads), stream, lists, samples, boundary, salt);
}

void launch_know_rows(const DeviceListsRef& lists, const KnownRows& known, cudaStream_t stream) {
  static_assert((kBucketRows + 1) * 4 << known_bits(kLongestDeviceList) <= 227 << 10);
  const int64_t warp_bytes = int64_t{(kBucketRows + 1) * 4} << known.bits;
  const int64_t warps = warp_bytes * kWarps <= 48 << 10 ? kWarps : 1;
  allow_all_shared_memory(know_kernel);
  launch(know_kernel, Grid::of(divide_up(lists.rows, warps), 32 * warps).with_shared(warps * warp_bytes), stream, lists,
         known);
}

void launch_collect_joins(const CollectTask& task, cudaStream_t stream) {
  const int bits = sample_table_bits(task.samples.samples);
  const int64_t table_bytes = int64_t{4} << bits;
  const int64_t warps = table_bytes * kCollectWarps <= 48 << 10 ? kCollectWarps : 1;
  allow_all_shared_memory(collect_kernel);
  launch(collect_kernel, Grid::of(divide_up(task.rows, warps), 32 * warps).with_shared(warps * table_bytes), stream,
         task, bits);
}

}  // namespace kith
