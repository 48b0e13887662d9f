#include "graph/build/nn_descent/collect_joins_cuda.hpp"

#include "core/divide.hpp"
#include "cuda/launch.hpp"
#include "cuda/shared_memory.hpp"
#include "graph/build/nn_descent/join_rules.hpp"
#include "kernels/select/device_warp_cuda.hpp"

namespace kith {
namespace {

constexpr int kCollectWarps = 8;
constexpr int kNoJoin = kJoinSizes;

// Places of the table by which those that come twice are found: a power of two, twice as many as there are samples.
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

// A warp for a row. Whoever is NEW is not OLD. What stays moves towards the front, to places that have been read.
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

__global__ void __launch_bounds__(32 * kCollectWarps) collect_kernel(const __grid_constant__ CollectTask task, int bits) {
  extern __shared__ uint32_t tables[];
  __shared__ uint32_t rows[kCollectWarps];
  __shared__ uint32_t packed[kCollectWarps];
  const int warps = static_cast<int>(blockDim.x) / 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t place = static_cast<int64_t>(blockIdx.x) * warps + warp;
  JoinCounts counts;
  int64_t row = 0;
  if (place < task.rows) {
    row = task.order == nullptr ? place : task.order[place];
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
  const int size = !meets ? kNoJoin : static_cast<int>(task.sizes ? size_of(shape_of(mine, task.across)) : JoinSize::large);
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

void launch_collect_joins(const CollectTask& task, cudaStream_t stream) {
  const int bits = sample_table_bits(task.samples.samples);
  const int64_t table_bytes = int64_t{4} << bits;
  const int64_t warps = table_bytes * kCollectWarps <= 48 << 10 ? kCollectWarps : 1;
  allow_all_shared_memory(collect_kernel);
  launch(collect_kernel, Grid::of(divide_up(task.rows, warps), 32 * warps).with_shared(warps * table_bytes), stream,
         task, bits);
}

}  // namespace kith
