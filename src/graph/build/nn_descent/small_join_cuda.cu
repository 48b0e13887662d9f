// Small joins of NN-Descent on a GPU (join_size.hpp): one or two warps for each.
//
// Operands go straight to registers: which column of a row is which of the product's does not matter while it is the
// same for both operands, so that four neighbouring threads read 64 bytes of a row at once. A warp keeps the products
// of its join in registers (warp_product_cuda.hpp). Those of two warps are in shared memory (small_product_cuda.hpp),
// where a thread has a column and goes over the rows there are. Few wait for each other, and three to four times as
// many joins are under way as with 128 threads for each. Late rounds, and all of a merge where few are OLD, are small
// joins; they cost a chain of reads (samples, operands, what is known, rows of pairs left), no products.
#include "graph/build/nn_descent/join_cuda.hpp"

#include "cuda/launch.hpp"
#include "graph/build/nn_descent/join_keys_cuda.hpp"
#include "graph/build/nn_descent/small_product_cuda.hpp"
#include "graph/build/nn_descent/warp_product_cuda.hpp"

namespace kith {
namespace {

constexpr int kSmallLeftRoom = 256;
static_assert(kSmallLeftRoom <= kOffered);
constexpr int kMostPrefetched = 4;  // chunks of a row

constexpr int threads_of(JoinSize size) { return size == JoinSize::one_warp ? 32 : kSmallColumns; }
// As many as registers and shared memory allow.
constexpr int blocks_per_processor(JoinSize size) { return size == JoinSize::one_warp ? 20 : 12; }
constexpr int product_bytes(JoinSize size) { return size == JoinSize::one_warp ? 0 : small_rows(size) * kProductStride * 4; }
constexpr JoinRoom small_room(JoinSize size) { return {small_samples(size), small_samples(size), kSmallLeftRoom}; }

template <int kThreads>
__device__ __forceinline__ void small_barrier() {
  if constexpr (kThreads == 32) {
    __syncwarp();
  } else {
    __syncthreads();
  }
}

// The samples' numbers, ends, facts and weights. `largest` gets the bits of the largest norm and residual.
template <JoinSize kSize>
__device__ __forceinline__ void fetch_samples(const JoinBlock& join, uint32_t row, uint32_t* largest) {
  constexpr int kThreads = threads_of(kSize);
  constexpr int kParts = (small_samples(kSize) + kThreads - 1) / kThreads;
  const JoinTask& task = join.task;
  const uint32_t* const numbers = task.samples.collected(row);
  uint32_t ids[kParts];
  KITH_UNROLL
  for (int part = 0; part < kParts; ++part) {
    const int i = part * kThreads + static_cast<int>(threadIdx.x);
    ids[part] = i < join.counts().all() ? __ldg(numbers + i) : kNobody;
  }
  float norm = 0;
  float residual = 0;
  KITH_UNROLL
  for (int part = 0; part < kParts; ++part) {
    const uint32_t id = ids[part];
    if (id == kNobody) continue;
    const int i = part * kThreads + static_cast<int>(threadIdx.x);
    // Operands begin to come while the facts are waited for.
    const std::byte* const operand = task.operands.halves +
                                     static_cast<int64_t>(id / kOperandTile) * task.operands.chunks * kTileChunkBytes +
                                     id % kOperandTile * kChunkBytes;
#pragma unroll 1
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
  const uint32_t most_norm = __reduce_max_sync(kAllLanes, __float_as_uint(norm));
  const uint32_t most_residual = __reduce_max_sync(kAllLanes, __float_as_uint(residual));
  if (lane_index() == 0) {
    atomicMax(largest, most_norm);
    atomicMax(largest + 1, most_residual);
  }
}

template <JoinSize kSize>
__global__ void __launch_bounds__(threads_of(kSize), blocks_per_processor(kSize))
    small_join_kernel(const __grid_constant__ JoinTask task) {
  constexpr int kThreads = threads_of(kSize);
  __shared__ int left;
  __shared__ int needed;
  __shared__ uint32_t largest[2];
  const uint32_t row = task.joins[task.first + blockIdx.x];
  const JoinCounts counts = unpack_counts(task.samples.counts[row]);
  const bool across = task.boundary > 0;
  const JoinBlock join{task, {product_bytes(kSize), small_room(kSize)}, {counts, across}, across ? counts.fresh : 0};
  const SmallJoin small{join, shape_of(counts, across), across};
  if (threadIdx.x == 0) {
    left = needed = 0;
    largest[0] = largest[1] = 0;
  }
#pragma unroll 1
  for (int slot = static_cast<int>(threadIdx.x); slot < join.slots.count(); slot += kThreads) {
    join.memory.nearest()[slot] = kPadding;
    join.memory.least()[slot] = kNanKey;
    join.memory.hits()[slot] = 0;
  }
  small_barrier<kThreads>();
  fetch_samples<kSize>(join, row, largest);
  small_barrier<kThreads>();
  const OperandFacts others{__uint_as_float(largest[0]), __uint_as_float(largest[1])};
  if constexpr (kSize == JoinSize::one_warp) {
    const WarpJoin mine{small};
    WarpProducts products;
    multiply_in_warp(mine, products);
    note_warp_rows(mine, products);
    note_warp_columns(mine, products);
    __syncwarp();
    set_limits<kThreads>(join, others);
    __syncwarp();
    leave_in_warp(mine, products, &left);
  } else {
    multiply_small(small);
    __syncthreads();
    drop_small_selves(small);
    __syncthreads();
    note_small(small);
    __syncthreads();
    set_limits<kThreads>(join, others);
    __syncthreads();
    leave_small(small, &left);
  }
  small_barrier<kThreads>();
  const bool all = left > kSmallLeftRoom;
  if (!all) choose_needed<kThreads>(join, left, others, &needed);
  small_barrier<kThreads>();
  compute_keys<true, kThreads>(join, all ? counts.fresh * (counts.all() - join.first_column) : needed, all);
  small_barrier<kThreads>();
  offer_nearest<kThreads>(join);
}

template <JoinSize kSize>
void launch_small(const JoinTask& task, cudaStream_t stream) {
  const int64_t bytes = product_bytes(kSize) + small_room(kSize).bytes();
  launch(small_join_kernel<kSize>, Grid::of(task.count, threads_of(kSize)).with_shared(bytes), stream, task);
}

}  // namespace

void launch_small_join(const JoinTask& task, JoinSize size, cudaStream_t stream) {
  if (size == JoinSize::one_warp) return launch_small<JoinSize::one_warp>(task, stream);
  launch_small<JoinSize::two_warps>(task, stream);
}

}  // namespace kith
