// What a round of NN-Descent looks up before its joins: samples of all lists, and which rows they hold. A warp for each
// list; one read of the lists.
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

}  // namespace kith
