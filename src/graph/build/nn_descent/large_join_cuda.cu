#include "graph/build/nn_descent/join_cuda.hpp"

#include "cuda/launch.hpp"
#include "cuda/shared_memory.hpp"
#include "graph/build/nn_descent/join_keys_cuda.hpp"
#include "graph/build/nn_descent/join_memory_cuda.hpp"
#include "graph/build/nn_descent/join_nearest_cuda.hpp"
#include "graph/build/nn_descent/join_product_cuda.hpp"

namespace kith {
namespace {

// A block of few threads, where an operand is a stage, and of many.
constexpr int kFewThreads = 128;
constexpr int kManyThreads = 256;
constexpr int kLeftRoom = 512;
static_assert(kLeftRoom <= kOffered);
constexpr int blocks_per_processor(int threads) { return threads == kFewThreads ? 5 : 3; }

template <bool kProducts, int kThreads>
__global__ void __launch_bounds__(kThreads, blocks_per_processor(kThreads))
    join_kernel(const __grid_constant__ JoinTask task, int operand_bytes) {
  __shared__ int left;
  __shared__ int needed;
  __shared__ uint32_t largest[2];  // the bits of the norm and the residual, which are not negative
  const auto p = static_cast<int>(task.samples.samples);
  const JoinMemory memory{operand_bytes, {4 * p, 6 * p, kLeftRoom}};
  const uint32_t row = task.joins[task.first + blockIdx.x];
  const JoinCounts counts = unpack_counts(task.samples.counts[row]);
  const uint32_t* const numbers = task.samples.collected(row);
  if (threadIdx.x == 0) {
    left = 0;
    needed = 0;
    largest[0] = largest[1] = 0;
  }
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < counts.all(); i += kThreads) memory.ids()[i] = numbers[i];
  __syncthreads();
  const bool across = task.boundary > 0;
  const JoinBlock join{task, memory, {counts, across}, across ? counts.fresh : 0};
  const auto tile_at = [&](int first_row, int first_col) {
    return JoinTile{memory.ids() + first_row, memory.ids() + first_col, min(counts.fresh - first_row, kJoinRows),
                    min(counts.all() - first_col, kJoinColumns), first_row == 0 && first_col == 0,
                    across && 4 * p <= kJoinColumns};
  };
  const uint32_t operands_at = ptx::shared_address(join_shared);
  if constexpr (kProducts) gather_stage<kThreads>(task.operands, tile_at(0, join.first_column), 0, operands_at);
#pragma unroll 1
  for (int slot = static_cast<int>(threadIdx.x); slot < join.slots.count(); slot += kThreads) {
    memory.nearest()[slot] = kPadding;
    memory.least()[slot] = kNanKey;
    memory.hits()[slot] = 0;
  }
  float norm = 0;
  float residual = 0;
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < counts.all(); i += kThreads) {
    const uint32_t id = memory.ids()[i];
    memory.ends()[i] = task.lists.ends[id];
    if constexpr (kProducts) {
      const JoinBounds bounds = task.operands.bounds[id];
      memory.bounds()[i] = bounds;
      memory.weights()[i] = bounds.scale > 0 ? join_weight(task.rows.kind, bounds) : NAN;
      if (!(bounds.scale > 0)) continue;
      norm = fmaxf(norm, bounds.norm * join_factor(task.rows.kind, bounds));
      residual = fmaxf(residual, bounds.residual * join_factor(task.rows.kind, bounds));
    }
  }
  if constexpr (kProducts) {
    const uint32_t most_norm = __reduce_max_sync(0xFFFFFFFFu, __float_as_uint(norm));
    const uint32_t most_residual = __reduce_max_sync(0xFFFFFFFFu, __float_as_uint(residual));
    if (threadIdx.x % 32 == 0) {
      atomicMax(largest, most_norm);
      atomicMax(largest + 1, most_residual);
    }
  }
  __syncthreads();
  bool all = true;
  if constexpr (kProducts) {
    const OperandBounds others{__uint_as_float(largest[0]), __uint_as_float(largest[1])};
    const bool one_tile = counts.fresh <= kJoinRows && counts.all() - join.first_column <= kJoinColumns;
    constexpr int kPart = kPartColumns<kThreads>;
    constexpr bool kParts = kPart < kJoinColumns;  // an operand is one stage then
    JoinProducts products;
#pragma unroll 1
    for (int pass = 0; pass < 2; ++pass) {
      if (pass == 1) {
        set_limits<kThreads>(join, others);
        __syncthreads();
      }
#pragma unroll 1
      for (int first_row = 0; first_row < counts.fresh; first_row += kJoinRows) {
#pragma unroll 1
        for (int first_col = join.first_column; first_col < counts.all(); first_col += kJoinColumns) {
          const JoinTile tile = tile_at(first_row, first_col);
          const bool gathers = pass == 0 || !one_tile;
          if (gathers && (pass > 0 || first_row > 0 || first_col > join.first_column)) {
            if (kParts) __syncthreads();  // all have read what was there
            gather_stage<kThreads>(task.operands, tile, 0, operands_at);
          }
          if (kParts && gathers) {
            ptx::copy_async_wait<0>();
            __syncthreads();
          }
#pragma unroll 1
          for (int part = 0; part < tile.column_count; part += kPart) {
            if (gathers || tile.column_count > kPart) {
              clear_products(products);
              if constexpr (kParts) {
                multiply_stage(tile, part, stage_chunks(task.operands, 0), operands_at, products);
              } else {
                multiply_stages<kThreads>(task.operands, tile, operands_at, products);
              }
              if (!across) drop_selves(join, products, first_row, first_col + part);
            }
#pragma unroll 1
            for (int kind = 0; kind < 2; ++kind) {
              if (!has_columns(join, first_col + part, kind == 1)) continue;
              if (pass == 0) {
                note_least(join, products, first_row, first_col + part, kind == 1);
              } else {
                leave_near(join, products, first_row, first_col + part, kind == 1, &left);
              }
            }
          }
        }
      }
      __syncthreads();
    }
    all = left > memory.room.left;
    if (!all) choose_needed<kThreads>(join, left, others, &needed);
    __syncthreads();
  }
  compute_keys<kProducts, kThreads>(join, all ? counts.fresh * (counts.all() - join.first_column) : needed, all);
  __syncthreads();
  offer_nearest<kThreads>(join);
}

__global__ void __launch_bounds__(kManyThreads)
    join_bounds_kernel(KeyKind kind, const QueryOperand* from, int64_t count, JoinBounds* to) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kManyThreads + threadIdx.x;
  if (i >= count) return;
  const QueryOperand bounds = from[i];
  const bool sure = bounds.unsure == 0 && scale_is_sure(kind, bounds.scale);
  to[i] = {static_cast<float>(bounds.squared_norm), bounds.operand.norm, bounds.operand.residual,
           sure ? bounds.scale : 0.0f};
}

template <bool kProducts, int kThreads>
void launch_large(const JoinTask& task, int64_t operand_bytes, cudaStream_t stream) {
  const auto kernel = join_kernel<kProducts, kThreads>;
  const auto p = static_cast<int>(task.samples.samples);
  allow_all_shared_memory(kernel);
  const int64_t bytes = operand_bytes + JoinRoom{4 * p, 6 * p, kLeftRoom}.bytes();
  launch(kernel, Grid::of(task.count, kThreads).with_shared(bytes), stream, task, static_cast<int>(operand_bytes));
}

}  // namespace

void launch_join_bounds(KeyKind kind, const QueryOperand* from, int64_t count, JoinBounds* to, cudaStream_t stream) {
  launch(join_bounds_kernel, Grid::over(count, kManyThreads), stream, kind, from, count, to);
}

void launch_join(const JoinTask& task, JoinSize size, cudaStream_t stream) {
  const int64_t p = task.samples.samples;
  if (task.operands.halves == nullptr) return launch_large<false, kManyThreads>(task, 0, stream);
  if (size != JoinSize::large) return launch_small_join(task, size, stream);
  const bool rows_apart = 4 * p > kJoinColumns;  // otherwise they are the first columns, or follow a few
  const int64_t operand_bytes = (kJoinColumns + (rows_apart ? kJoinRows : 0)) * kJoinStageBytes;
  if (task.operands.chunks <= kJoinStageChunks) return launch_large<true, kFewThreads>(task, operand_bytes, stream);
  launch_large<true, kManyThreads>(task, operand_bytes, stream);
}

}  // namespace kith
