#include "graph/nn_descent/small_join_cuda.hpp"

#include "core/divide.hpp"
#include "cuda/error.hpp"
#include "graph/nn_descent/join_keys_cuda.hpp"
#include "graph/nn_descent/small_product_cuda.hpp"

namespace kith {
namespace {

constexpr int kWarpThreads = 32;
constexpr int kSmallLeftRoom = 256;
static_assert(kSmallLeftRoom <= kOffered);
constexpr int kMostPrefetched = 4;  // chunks of a row

// As many as registers allow.
constexpr int warps_per_processor(int groups) { return groups == 1 ? 20 : 12; }
// Of samples, and of slots, which are no more.
constexpr int most_small_samples(int groups) { return kSmallColumns + groups * kGroupRows; }
constexpr JoinRoom small_room(int groups) {
  return {most_small_samples(groups), most_small_samples(groups), kSmallLeftRoom};
}

// The samples' numbers, ends, facts and weights; returns the largest facts of the join.
template <int kGroups>
__device__ __forceinline__ OperandFacts fetch_samples(const JoinBlock& join, uint32_t row) {
  constexpr int kParts = (most_small_samples(kGroups) + kWarpThreads - 1) / kWarpThreads;
  const JoinTask& task = join.task;
  const uint32_t* const numbers = task.samples.collected(row);
  uint32_t ids[kParts];
  KITH_UNROLL
  for (int part = 0; part < kParts; ++part) {
    const int i = part * kWarpThreads + lane_index();
    ids[part] = i < join.counts().all() ? __ldg(numbers + i) : kNobody;
  }
  float norm = 0;
  float residual = 0;
  KITH_UNROLL
  for (int part = 0; part < kParts; ++part) {
    const uint32_t id = ids[part];
    if (id == kNobody) continue;
    const int i = part * kWarpThreads + lane_index();
    // Operands begin to come while the facts are waited for.
    const std::byte* operand = task.operands.halves + operand_offset(id, 0, task.operands.chunks) / kChunkBytes * kChunkBytes;
    for (int chunk = 0; chunk < min(static_cast<int>(task.operands.chunks), kMostPrefetched); ++chunk) {
      ptx::prefetch(operand + chunk * kTileChunkBytes);
    }
    const JoinFacts facts = task.operands.facts[id];
    join.memory.ids()[i] = id;
    join.memory.ends()[i] = task.lists.ends[id];
    join.memory.facts()[i] = facts;
    join.memory.weights()[i] = facts.scale > 0 ? join_weight(task.rows.kind, facts) : NAN;
    if (!(facts.scale > 0)) continue;
    norm = fmaxf(norm, facts.norm * join_factor(task.rows.kind, facts));
    residual = fmaxf(residual, facts.residual * join_factor(task.rows.kind, facts));
  }
  // Neither is negative: their bits are ordered as they are.
  return {__uint_as_float(__reduce_max_sync(kAllLanes, __float_as_uint(norm))),
          __uint_as_float(__reduce_max_sync(kAllLanes, __float_as_uint(residual)))};
}

// A block is one warp.
template <int kGroups>
__global__ void __launch_bounds__(kWarpThreads, warps_per_processor(kGroups))
    small_join_kernel(const __grid_constant__ JoinTask task) {
  __shared__ int left;
  __shared__ int needed;
  const uint32_t row = task.joins[task.first + blockIdx.x];
  const JoinCounts counts = unpack_counts(task.samples.counts[row]);
  const bool across = task.boundary > 0;
  const JoinBlock join{task, {0, small_room(kGroups)}, {counts, across}, across ? counts.fresh : 0};
  const SmallJoin small{join, shape_of(counts, across), across};
  if (lane_index() == 0) left = needed = 0;
#pragma unroll 1
  for (int slot = lane_index(); slot < join.slots.count(); slot += kWarpThreads) {
    join.memory.nearest()[slot] = kPadding;
    join.memory.hits()[slot] = 0;
  }
  const OperandFacts others = fetch_samples<kGroups>(join, row);
  __syncwarp();
  SmallProducts<kGroups> products;
  multiply_small<kGroups>(small, products);
  note_rows<kGroups>(small, products);
  note_columns<kGroups>(small, products);
  __syncwarp();
  set_limits<kWarpThreads>(join, others, {.entry = true, .nearest = !task.all_pairs});
  __syncwarp();
  leave_small<kGroups>(small, products, &left);
  __syncwarp();
  const bool all = left > kSmallLeftRoom;
  if (!all) choose_needed<kWarpThreads>(join, left, others, &needed);
  __syncwarp();
  compute_keys<true, kWarpThreads>(join, all ? counts.fresh * (counts.all() - join.first_column) : needed, all);
  __syncwarp();
  offer_nearest<kWarpThreads>(join);
}

template <int kGroups>
void launch(const JoinTask& task, cudaStream_t stream) {
  small_join_kernel<kGroups><<<static_cast<unsigned>(task.count), kWarpThreads,
                               static_cast<size_t>(small_room(kGroups).bytes()), stream>>>(task);
  KITH_CUDA_CHECK_LAUNCH("small_join_kernel");
}

}  // namespace

void launch_small_join(const JoinTask& task, JoinSize size, cudaStream_t stream) {
  if (task.count == 0) return;
  if (size == JoinSize::one_group) return launch<1>(task, stream);
  launch<2>(task, stream);
}

}  // namespace kith
