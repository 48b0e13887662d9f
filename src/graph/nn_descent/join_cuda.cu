#include "graph/nn_descent/join_cuda.hpp"

#include "core/divide.hpp"
#include "cuda/error.hpp"
#include "cuda/shared_memory.hpp"
#include "graph/nn_descent/join_keys_cuda.hpp"
#include "graph/nn_descent/join_memory_cuda.hpp"
#include "graph/nn_descent/join_nearest_cuda.hpp"
#include "graph/nn_descent/join_operands_cuda.hpp"
#include "graph/nn_descent/join_product_cuda.hpp"
#include "graph/nn_descent/join_sets_cuda.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int kDirectThreads = 256;  // of a block that computes keys alone
constexpr int kFactThreads = 256;
constexpr int kOfferThreads = 256;
constexpr int kJoinBlocks = 3;  // of a processor at a time: what registers allow

// What a block finds out about its samples: the bits of the largest norm and residual, which are not negative, and whether
// one has no operand.
struct SampleFacts {
  uint32_t norm;
  uint32_t residual;
  uint32_t unsure;
};

template <bool kProducts, int kThreads>
__device__ void read_samples(const JoinBlock& join, SampleFacts& largest) {
  const JoinMemory& memory = join.memory;
  const KeyKind kind = join.task.rows.kind;
  const bool product = kind == KeyKind::inner_product;
  float norm = 0;
  float residual = 0;
  bool unsure = false;
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < join.counts().end(); i += kThreads) {
    const uint32_t id = memory.ids()[i];
    if (id == kNobody) {  // counts for nothing
      if constexpr (kProducts) memory.weights()[i] = product ? Weighed{NAN, 0} : Weighed{-1, HUGE_VALF};
      continue;
    }
    memory.ends()[i] = join.task.lists.ends[id];
    if constexpr (kProducts) {
      const JoinFacts facts = join.task.operands.facts[id];
      memory.facts()[i] = facts;
      const float weight = facts.scale > 0 ? join_weight(kind, facts) : NAN;
      memory.weights()[i] = product ? Weighed{-weight, 0} : Weighed{-1, weight};
      unsure = unsure || !(facts.scale > 0);
      if (!(facts.scale > 0)) continue;
      norm = fmaxf(norm, facts.norm * join_factor(kind, facts));
      residual = fmaxf(residual, facts.residual * join_factor(kind, facts));
    }
  }
  if constexpr (kProducts) {
    const uint32_t most_norm = __reduce_max_sync(0xFFFFFFFFu, __float_as_uint(norm));
    const uint32_t most_residual = __reduce_max_sync(0xFFFFFFFFu, __float_as_uint(residual));
    if (unsure) largest.unsure = 1;
    if (threadIdx.x % 32 == 0) {
      atomicMax(&largest.norm, most_norm);
      atomicMax(&largest.residual, most_residual);
    }
  }
}

// Multiplies the samples and hands on the pairs that may be the nearest of a slot. Of several tiles the least values must be
// known first, and they are multiplied again.
__device__ __forceinline__ void multiply_samples(const JoinBlock& join, bool across, const SampleFacts& facts,
                                                 const JoinTile& first_tile, uint32_t operands_at, HandedPairs& handed) {
  const JoinCounts& counts = join.counts();
  const uint32_t* const ids = join.memory.ids();
  const OperandFacts others{__uint_as_float(facts.norm), __uint_as_float(facts.residual)};
  const bool one_tile = counts.fresh <= kJoinRows && counts.end() - join.first_column <= kJoinColumns;
#pragma unroll 1
  for (int pass = 0; pass < (one_tile ? 1 : 2); ++pass) {
#pragma unroll 1
    for (int first_row = 0; first_row < counts.fresh; first_row += kJoinRows) {
#pragma unroll 1
      for (int first_col = join.first_column; first_col < counts.end(); first_col += kJoinColumns) {
        JoinTile tile = first_tile;
        if (!one_tile) {
          tile.rows = ids + first_row;
          tile.columns = ids + first_col;
          tile.row_count = min(counts.fresh - first_row, kJoinRows);
          tile.column_count = min(counts.end() - first_col, kJoinColumns);
          tile.rows_first = !across && first_row == 0 && first_col == 0;
        }
        if (pass > 0 || first_row > 0 || first_col > join.first_column) {
          __syncthreads();  // all have read what was there
          gather_stage(join.task.operands, tile, 0, operands_at);
        }
        JoinProducts products;
        multiply_tile(join.task.operands, tile, operands_at, products);
        __syncthreads();  // all have read the operands
        store_products(tile, products);
        __syncthreads();
        const TilePass what = one_tile ? TilePass::both : pass == 0 ? TilePass::least : TilePass::near;
        look_at_tile<kJoinThreads>(join, tile, first_row, first_col, what, others, facts.unsure != 0, handed);
      }
    }
  }
}

template <bool kProducts, int kThreads>
__global__ void __launch_bounds__(kThreads, kProducts ? kJoinBlocks : 3)
    join_kernel(const __grid_constant__ JoinTask task, int operand_bytes) {
  __shared__ HandedPairs handed;
  __shared__ SampleFacts largest;
  const auto p = static_cast<int>(task.samples.samples);
  const JoinMemory memory(operand_bytes, p);
  const int64_t place = task.first + blockIdx.x;
  const int64_t row = task.order == nullptr ? place : task.order[place];
  if (threadIdx.x == 0) {
    handed = {0, 0};
    largest = {0, 0, 0};
  }
  const JoinCounts counts = collect_samples<kThreads>(task.samples, row, task.boundary,
                                                      reinterpret_cast<uint32_t*>(join_shared), memory.ids());
  const bool across = task.boundary > 0;
  if (!counts.meet(across)) {
    if (kProducts && threadIdx.x == 0) task.offered_counts[blockIdx.x] = 0;
    return;
  }
  const JoinBlock join{task, memory, {p, counts}, across ? counts.first_old() : 0};
  const uint32_t operands_at = ptx::shared_address(join_shared);
  const JoinTile first_tile{memory.ids(), memory.ids() + join.first_column, min(counts.fresh, kJoinRows),
                            min(counts.end() - join.first_column, kJoinColumns), !across,
                            across && 4 * p <= kJoinColumns};
  if constexpr (kProducts) gather_stage(task.operands, first_tile, 0, operands_at);
  if (threadIdx.x == 0) {
    atomicAdd(task.pairs + blockIdx.x % kCounters, static_cast<unsigned long long>(counts.pairs(across)));
  }
#pragma unroll 1
  for (int slot = static_cast<int>(threadIdx.x); slot < join.slots.count(); slot += kThreads) {
    memory.nearest()[slot] = kPadding;
    memory.least()[slot] = HUGE_VALF;
  }
  read_samples<kProducts, kThreads>(join, largest);
  __syncthreads();
  if constexpr (kProducts) {
    multiply_samples(join, across, largest, first_tile, operands_at, handed);
    __syncthreads();
    if (threadIdx.x == 0) task.offered_counts[blockIdx.x] = static_cast<uint32_t>(min(handed.offered, int{kOfferedPerJoin}));
    if (handed.needed == 0) return;
    if (handed.needed <= kNeededRoom) {
      compute_needed<kThreads>(join, handed.needed);
    } else {
      compute_all<kThreads>(join);
    }
  } else {
    compute_all<kThreads>(join);
  }
  __syncthreads();
  offer_nearest<kThreads>(join);
}

// The pairs that joins left to be offered: a warp for each join, four threads for each pair.
__global__ void __launch_bounds__(kOfferThreads) offer_pairs_kernel(const __grid_constant__ JoinTask task) {
  const int64_t join = static_cast<int64_t>(blockIdx.x) * (kOfferThreads / 32) + threadIdx.x / 32;
  if (join >= task.count) return;
  const uint32_t count = task.offered_counts[join];
  for (uint32_t i = threadIdx.x % 32 / kRowThreads; i < count; i += 32 / kRowThreads) {
    const OfferedPair pair = task.offered[join * kOfferedPerJoin + i];
    const float key = product_pair_key(task.rows, pair.row, pair.other);
    if (threadIdx.x % kRowThreads != 0) continue;
    offer_unknown(task, pair.row, task.lists.ends[pair.row], pack_neighbor(ordered_key(key), pair.other));
  }
}

__global__ void __launch_bounds__(kFactThreads)
    facts_kernel(KeyKind kind, const QueryFacts* from, int64_t count, JoinFacts* to) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kFactThreads + threadIdx.x;
  if (i >= count) return;
  const QueryFacts facts = from[i];
  const bool sure = facts.unsure == 0 && scale_is_sure(kind, facts.scale);
  to[i] = {static_cast<float>(facts.squared_norm), facts.operand.norm, facts.operand.residual, sure ? facts.scale : 0.0f};
}

template <bool kProducts, int kThreads>
void launch(const JoinTask& task, int64_t operand_bytes, cudaStream_t stream) {
  const auto kernel = join_kernel<kProducts, kThreads>;
  allow_all_shared_memory(reinterpret_cast<const void*>(kernel));
  kernel<<<static_cast<unsigned>(task.count), kThreads,
           static_cast<size_t>(operand_bytes + JoinMemory::bytes(task.samples.samples)), stream>>>(
      task, static_cast<int>(operand_bytes));
  KITH_CUDA_CHECK_LAUNCH("join_kernel");
}

}  // namespace

void launch_join_facts(KeyKind kind, const QueryFacts* from, int64_t count, JoinFacts* to, cudaStream_t stream) {
  if (count == 0) return;
  facts_kernel<<<static_cast<unsigned>(divide_up(count, int64_t{kFactThreads})), kFactThreads, 0, stream>>>(kind, from,
                                                                                                            count, to);
  KITH_CUDA_CHECK_LAUNCH("facts_kernel");
}

void launch_join(const JoinTask& task, cudaStream_t stream) {
  if (task.count == 0) return;
  const int64_t p = task.samples.samples;
  if (task.operands.halves == nullptr) {
    return launch<false, kDirectThreads>(task, int64_t{4} << sample_table_bits(p), stream);
  }
  const bool rows_apart = 4 * p > kJoinColumns;  // else they are the first columns, or lie behind few
  const int64_t operand_bytes = (kJoinColumns + (rows_apart ? kJoinRows : 0)) * kJoinStageBytes;
  launch<true, kJoinThreads>(task, std::max<int64_t>(operand_bytes, kProductBytes), stream);
  const int64_t blocks = divide_up(task.count, int64_t{kOfferThreads / 32});
  offer_pairs_kernel<<<static_cast<unsigned>(blocks), kOfferThreads, 0, stream>>>(task);
  KITH_CUDA_CHECK_LAUNCH("offer_pairs_kernel");
}

}  // namespace kith
