#include "graph/nn_descent/join_cuda.hpp"

#include "core/divide.hpp"
#include "core/ordered_key.hpp"
#include "cuda/error.hpp"
#include "cuda/shared_memory.hpp"
#include "graph/nn_descent/join_operands_cuda.hpp"
#include "graph/nn_descent/join_product_cuda.hpp"
#include "graph/nn_descent/join_rules.hpp"
#include "graph/nn_descent/join_sets_cuda.hpp"
#include "graph/pairs/pair_key_cuda.hpp"

namespace kith {
namespace {

constexpr int kThreads = kJoinThreads;
constexpr int kGroups = kThreads / kRowThreads;  // of threads that compute a key together
constexpr int kLeftRoom = 1024;                  // pairs that products may leave; more, and all keys are computed
constexpr int kBlocksPerProcessor = 4;

// A pair that may be the nearest of the sample whose slot it is.
struct LeftPair {
  uint16_t slot;
  uint16_t other;
  float value;
};

// A block's memory beside the operands. A slot is where the nearest of a sample is looked for, 2 p of each kind: the
// nearest NEW one of a NEW one, its nearest OLD one, the nearest NEW one of an OLD one.
struct JoinMemory {
  std::byte* base;  // behind the operands
  int p;

  __device__ JoinFacts* facts() const { return at<JoinFacts>(0); }  // of the samples, 4 p, as all up to the weights
  __device__ uint64_t* ends() const { return at<uint64_t>(64); }    // of their lists
  __device__ uint32_t* ids() const { return at<uint32_t>(96); }
  __device__ float* weights() const { return at<float>(112); }
  __device__ uint64_t* nearest() const { return at<uint64_t>(128); }  // of the slots, 6 p, as all up to the hits
  __device__ uint32_t* least() const { return at<uint32_t>(176); }    // ordered values
  __device__ float* limits() const { return at<float>(200); }
  __device__ uint32_t* hits() const { return at<uint32_t>(224); }  // pairs left
  __device__ LeftPair* left() const { return at<LeftPair>(kBytesPerSample); }
  __device__ uint16_t* needed() const { return reinterpret_cast<uint16_t*>(left() + kLeftRoom); }  // of the pairs left

  static constexpr int kBytesPerSample = 248;  // for each of p
  static constexpr int64_t bytes(int64_t p) {
    return kBytesPerSample * p + kLeftRoom * static_cast<int64_t>(sizeof(LeftPair) + sizeof(uint16_t));
  }

 private:
  static_assert(sizeof(JoinFacts) == 16 && sizeof(LeftPair) == 8);
  template <typename T>
  __device__ T* at(int bytes_per_sample) const {
    return reinterpret_cast<T*>(base + bytes_per_sample * p);
  }
};

// The least of values that four neighbouring lanes have, eight each: a lane gets those of its part, two of them.
__device__ void least_of_four_lanes(float (&values)[2 * kRowGroups], float (&mine)[2]) {
  static_assert(kRowGroups == 4);
  const bool odd = threadIdx.x % 2 != 0;
  const bool upper = threadIdx.x % 4 >= 2;
  float half[4];
  KITH_UNROLL
  for (int i = 0; i < 4; ++i) {
    const float kept = odd ? values[2 * i + 1] : values[2 * i];
    const float given = odd ? values[2 * i] : values[2 * i + 1];
    half[i] = fminf(kept, __shfl_xor_sync(0xFFFFFFFFu, given, 1));
  }
  KITH_UNROLL
  for (int i = 0; i < 2; ++i) {
    const float kept = upper ? half[2 * i + 1] : half[2 * i];
    const float given = upper ? half[2 * i] : half[2 * i + 1];
    mine[i] = fminf(kept, __shfl_xor_sync(0xFFFFFFFFu, given, 2));
  }
}

// One block's join.
struct Join {
  const JoinTask& task;
  const JoinMemory memory;
  int p;
  JoinCounts counts;
  int first_column;  // of the samples that NEW ones meet: all, or in a merge OLD ones

  __device__ int new_slot(int row, int column) const { return column < counts.fresh ? row : 2 * p + row; }
  __device__ int old_slot(int column) const { return 4 * p + column - counts.fresh; }
  // The sample whose slot it is; none where it is counts.all.
  __device__ int sample_of(int slot) const {
    if (slot < 4 * p) {
      const int sample = slot < 2 * p ? slot : slot - 2 * p;
      return sample < counts.fresh ? sample : counts.all;
    }
    return counts.fresh + slot - 4 * p < counts.all ? counts.fresh + slot - 4 * p : counts.all;
  }
  __device__ float value_of(float product, float weight) const { return join_value(task.rows.kind, product, weight); }

  // The least values of a tile's rows, among columns of one kind, and of its OLD columns.
  template <bool kOld>
  __device__ void note_least(const JoinProducts& products, int first_row, int first_col) const {
    float of_rows[2 * kRowGroups];
    KITH_UNROLL
    for (int i = 0; i < 2 * kRowGroups; ++i) of_rows[i] = HUGE_VALF;
    KITH_UNROLL
    for (int n = 0; n < 2; ++n) {
      KITH_UNROLL
      for (int side = 0; side < 2; ++side) {
        const int column = first_col + product_column(n, side);
        const bool there = column < counts.all && (column >= counts.fresh) == kOld;
        const float weight = there ? memory.weights()[column] : 0.0f;
        float of_column = HUGE_VALF;
        KITH_UNROLL
        for (int m = 0; m < kRowGroups; ++m) {
          if (first_row + m * 16 >= counts.fresh) break;
          KITH_UNROLL
          for (int half = 0; half < 2; ++half) {
            const int row = first_row + product_row(m, half);
            const float product = products[m][n][2 * half + side];
            if (there && (kOld || row != column)) {
              of_rows[2 * m + half] = fminf(of_rows[2 * m + half], value_of(product, weight));
            }
            if (kOld && row < counts.fresh) of_column = fminf(of_column, value_of(product, memory.weights()[row]));
          }
        }
        if constexpr (kOld) {
          KITH_UNROLL
          for (int apart = 4; apart < 32; apart *= 2) {
            of_column = fminf(of_column, __shfl_xor_sync(0xFFFFFFFFu, of_column, apart));
          }
          if (threadIdx.x % 32 < 4 && there && of_column < HUGE_VALF) {
            atomicMin(memory.least() + old_slot(column), ordered_key(of_column));
          }
        }
      }
    }
    float mine[2];
    least_of_four_lanes(of_rows, mine);
    const int part = static_cast<int>(threadIdx.x) % 4;  // values part, part + 4 of the eight
    KITH_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int value = part + 4 * i;
      const int row = first_row + product_row(value / 2, value % 2);
      if (row < counts.fresh && mine[i] < HUGE_VALF) {
        atomicMin(memory.least() + (kOld ? 2 * p : 0) + row, ordered_key(mine[i]));
      }
    }
  }

  // Values up to which a pair may enter the list of a slot's sample.
  __device__ void set_limits(const OperandFacts& others) const {
    for (int slot = static_cast<int>(threadIdx.x); slot < 6 * p; slot += kThreads) {
      const int sample = sample_of(slot);
      if (sample == counts.all) continue;
      const JoinFacts facts = memory.facts()[sample];
      memory.limits()[slot] =
          facts.scale > 0 ? key_limit(join_window(task.rows.kind, task.rows.cols, facts, others),
                                      key_of_ordered(ordered_of(memory.ends()[sample])))
                          : HUGE_VALF;
    }
  }
  // And be its nearest.
  __device__ void lower_limits(const OperandFacts& others) const {
    for (int slot = static_cast<int>(threadIdx.x); slot < 6 * p; slot += kThreads) {
      const int sample = sample_of(slot);
      if (sample == counts.all || memory.least()[slot] == kNanKey) continue;
      const JoinFacts facts = memory.facts()[sample];
      if (!(facts.scale > 0)) continue;
      const JoinWindow window = join_window(task.rows.kind, task.rows.cols, facts, others);
      memory.limits()[slot] =
          fminf(memory.limits()[slot], nearest_limit(window, key_of_ordered(memory.least()[slot])));
    }
  }

  __device__ void leave_pair(int slot, int other, float value, int* count) const {
    const int place = atomicAdd(count, 1);
    if (place >= kLeftRoom) return;
    memory.left()[place] = {static_cast<uint16_t>(slot), static_cast<uint16_t>(other), value};
    atomicAdd(memory.hits() + slot, 1u);
  }

  // What is not above the limits, among columns of one kind. A value that is no number stays.
  template <bool kOld>
  __device__ void leave_pairs(const JoinProducts& products, int first_row, int first_col, int* count) const {
    KITH_UNROLL
    for (int m = 0; m < kRowGroups; ++m) {
      if (first_row + m * 16 >= counts.fresh) break;
      KITH_UNROLL
      for (int half = 0; half < 2; ++half) {
        const int row = first_row + product_row(m, half);
        if (row >= counts.fresh) continue;
        const int slot = kOld ? 2 * p + row : row;
        const float limit = memory.limits()[slot];
        const float row_weight = kOld ? memory.weights()[row] : 0.0f;
        KITH_UNROLL
        for (int n = 0; n < 2; ++n) {
          KITH_UNROLL
          for (int side = 0; side < 2; ++side) {
            const int column = first_col + product_column(n, side);
            if (column >= counts.all || (column >= counts.fresh) != kOld || (!kOld && row == column)) continue;
            const float product = products[m][n][2 * half + side];
            const float value = value_of(product, memory.weights()[column]);
            if (!(value > limit)) leave_pair(slot, column, value, count);
            if constexpr (kOld) {
              const float other = value_of(product, row_weight);
              if (!(other > memory.limits()[old_slot(column)])) leave_pair(old_slot(column), row, other, count);
            }
          }
        }
      }
    }
  }

  // Whether a warp's columns hold some of a kind.
  __device__ bool has_columns(int first_col, bool old) const {
    const int first = first_col + static_cast<int>(threadIdx.x) / 32 * 16;
    return first < counts.all && (old ? first + 16 > counts.fresh && counts.fresh < counts.all : first < counts.fresh);
  }

  __device__ bool in_list(uint32_t row, uint64_t neighbor) const {
    const uint64_t* const list = task.lists.lists + row * task.lists.length;
    int64_t low = 0;
    int64_t high = task.lists.length;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (without_flag(list[middle]) < neighbor) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low < task.lists.length && without_flag(list[low]) == neighbor;
  }

  __device__ uint64_t* inbox_place(uint32_t row, uint32_t other) const {
    return task.inbox + row * task.slots + inbox_slot(task.salt, other, task.slots);
  }

  // Whether an offer would change nothing, before its key is known.
  __device__ bool in_vain(const LeftPair& pair, const OperandFacts& others) const {
    const int sample = sample_of(pair.slot);
    const uint32_t row = memory.ids()[sample];
    const uint32_t neighbor = memory.ids()[pair.other];
    const uint32_t waiting = ordered_of(__ldcg(inbox_place(row, neighbor)));
    if (is_known(task.known, row, neighbor) == Known::yes) return true;
    if (!(memory.limits()[pair.slot] < HUGE_VALF)) return false;
    const JoinWindow window = join_window(task.rows.kind, task.rows.cols, memory.facts()[sample], others);
    return ordered_key(key_below(window, pair.value)) > waiting;
  }

  __device__ void offer(int sample, uint64_t neighbor) const {
    if (neighbor >= memory.ends()[sample]) return;
    const uint32_t row = memory.ids()[sample];
    uint64_t* const place = inbox_place(row, row_of(neighbor));
    const uint64_t waiting = __ldcg(place);
    const Known known = is_known(task.known, row, row_of(neighbor));
    if (known == Known::yes || (known == Known::unsure && in_list(row, neighbor))) return;
    if (neighbor < waiting) {
      atomicMin(reinterpret_cast<unsigned long long*>(place), static_cast<unsigned long long>(neighbor));
    }
  }

  // A key has been computed: what the sample is offered, or may be.
  __device__ void take(int slot, int sample, float key, int other) const {
    const uint64_t neighbor = pack_neighbor(ordered_key(key), memory.ids()[other]);
    if (task.all_pairs) return offer(sample, neighbor);
    atomicMin(reinterpret_cast<unsigned long long*>(memory.nearest() + slot), static_cast<unsigned long long>(neighbor));
  }

  // Of the pairs left those whose keys are needed; all where a sample has several.
  __device__ void choose_needed(int count, const OperandFacts& others, int* needed) const {
    for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) {
      const LeftPair pair = memory.left()[i];
      if ((task.all_pairs || memory.hits()[pair.slot] == 1) && in_vain(pair, others)) continue;
      memory.needed()[atomicAdd(needed, 1)] = static_cast<uint16_t>(i);
    }
  }

  __device__ void keys_of_needed(int count) const {
    for (int i = static_cast<int>(threadIdx.x) / kRowThreads; i < count; i += kGroups) {
      const LeftPair pair = memory.left()[memory.needed()[i]];
      const int sample = sample_of(pair.slot);
      const float key = pair_key(task.rows, memory.ids()[sample], memory.ids()[pair.other]);
      if (threadIdx.x % kRowThreads == 0) take(pair.slot, sample, key, pair.other);
    }
  }

  __device__ void keys_of_all() const {
    const int width = counts.all - first_column;
    for (int i = static_cast<int>(threadIdx.x) / kRowThreads; i < counts.fresh * width; i += kGroups) {
      const int row = i / width;
      const int column = first_column + i % width;
      if (column < counts.fresh && column <= row) continue;
      const float key = pair_key(task.rows, memory.ids()[row], memory.ids()[column]);
      if (threadIdx.x % kRowThreads != 0) continue;
      take(new_slot(row, column), row, key, column);
      take(column < counts.fresh ? column : old_slot(column), column, key, row);
    }
  }

  __device__ void offer_nearest() const {
    for (int slot = static_cast<int>(threadIdx.x); slot < 6 * p; slot += kThreads) {
      if (memory.nearest()[slot] != kPadding) offer(sample_of(slot), memory.nearest()[slot]);
    }
  }
};

template <bool kProducts>
__global__ void __launch_bounds__(kThreads, kBlocksPerProcessor)
    join_kernel(const __grid_constant__ JoinTask task, int operand_bytes) {
  extern __shared__ __align__(128) std::byte shared[];
  __shared__ int left;
  __shared__ int needed;
  __shared__ uint32_t largest[2];  // the bits of the norm and the residual, which are not negative
  const auto p = static_cast<int>(task.samples.samples);
  const JoinMemory memory{shared + operand_bytes, p};
  const int64_t place = task.first + blockIdx.x;
  const int64_t row = task.order == nullptr ? place : task.order[place];
  if (threadIdx.x == 0) {
    left = 0;
    needed = 0;
    largest[0] = largest[1] = 0;
  }
  const JoinCounts counts = collect_samples<kThreads>(task.samples, row, task.boundary,
                                                      reinterpret_cast<uint32_t*>(shared), memory.ids());
  const bool across = task.boundary > 0;
  const int old = counts.all - counts.fresh;
  if (counts.fresh == 0 || (old == 0 && (across || counts.fresh == 1))) return;
  const Join join{task, memory, p, counts, across ? counts.fresh : 0};
  const auto tile_at = [&](int first_row, int first_col) {
    return JoinTile{memory.ids() + first_row, memory.ids() + first_col, min(counts.fresh - first_row, kJoinRows),
                    min(counts.all - first_col, kJoinColumns), first_row == 0 && first_col == 0};
  };
  const uint32_t operands_at = ptx::shared_address(shared);
  if constexpr (kProducts) gather_stage(task.operands, tile_at(0, join.first_column), 0, operands_at);
  if (threadIdx.x == 0) {
    const int among = across ? 0 : counts.fresh * (counts.fresh - 1) / 2;
    atomicAdd(task.pairs + blockIdx.x % kCounters, static_cast<unsigned long long>(among + counts.fresh * old));
  }
  for (int slot = static_cast<int>(threadIdx.x); slot < 6 * p; slot += kThreads) {
    memory.nearest()[slot] = kPadding;
    memory.least()[slot] = kNanKey;
    memory.hits()[slot] = 0;
  }
  float norm = 0;
  float residual = 0;
  for (int i = static_cast<int>(threadIdx.x); i < counts.all; i += kThreads) {
    const uint32_t id = memory.ids()[i];
    memory.ends()[i] = task.lists.ends[id];
    if constexpr (kProducts) {
      const JoinFacts facts = task.operands.facts[id];
      memory.facts()[i] = facts;
      memory.weights()[i] = facts.scale > 0 ? join_weight(task.rows.kind, facts) : NAN;
      if (!(facts.scale > 0)) continue;
      norm = fmaxf(norm, facts.norm * join_factor(task.rows.kind, facts));
      residual = fmaxf(residual, facts.residual * join_factor(task.rows.kind, facts));
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
  if constexpr (kProducts) {
    const OperandFacts others{__uint_as_float(largest[0]), __uint_as_float(largest[1])};
    join.set_limits(others);
    const bool one_tile = counts.fresh <= kJoinRows && counts.all - join.first_column <= kJoinColumns;
    JoinProducts products;
    for (int pass = 0; pass < 2; ++pass) {
      for (int first_row = 0; first_row < counts.fresh; first_row += kJoinRows) {
        for (int first_col = join.first_column; first_col < counts.all; first_col += kJoinColumns) {
          if (pass == 0 || !one_tile) {
            const JoinTile tile = tile_at(first_row, first_col);
            if (pass > 0 || first_row > 0 || first_col > join.first_column) {
              gather_stage(task.operands, tile, 0, operands_at);
            }
            multiply_tile(task.operands, task.rows.cols, tile, operands_at, products);
          }
          const bool fresh = join.has_columns(first_col, false);
          const bool olds = join.has_columns(first_col, true);
          if (pass == 0) {
            if (fresh) join.note_least<false>(products, first_row, first_col);
            if (olds) join.note_least<true>(products, first_row, first_col);
          } else {
            if (fresh) join.leave_pairs<false>(products, first_row, first_col, &left);
            if (olds) join.leave_pairs<true>(products, first_row, first_col, &left);
          }
        }
      }
      __syncthreads();
      if (pass == 1) break;
      if (!task.all_pairs) join.lower_limits(others);
      __syncthreads();
    }
    if (left <= kLeftRoom) {
      join.choose_needed(left, others, &needed);
      __syncthreads();
      join.keys_of_needed(needed);
    } else {
      join.keys_of_all();
    }
  } else {
    join.keys_of_all();
  }
  __syncthreads();
  join.offer_nearest();
}

__global__ void __launch_bounds__(kThreads)
    facts_kernel(KeyKind kind, const QueryFacts* from, int64_t count, JoinFacts* to) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  const QueryFacts facts = from[i];
  const bool sure = facts.unsure == 0 && scale_is_sure(kind, facts.scale);
  to[i] = {static_cast<float>(facts.squared_norm), facts.operand.norm, facts.operand.residual, sure ? facts.scale : 0.0f};
}

template <bool kProducts>
void launch(const JoinTask& task, int64_t operand_bytes, cudaStream_t stream) {
  const auto kernel = join_kernel<kProducts>;
  allow_all_shared_memory(reinterpret_cast<const void*>(kernel));
  kernel<<<static_cast<unsigned>(task.count), kThreads,
           static_cast<size_t>(operand_bytes + JoinMemory::bytes(task.samples.samples)), stream>>>(
      task, static_cast<int>(operand_bytes));
  KITH_CUDA_CHECK_LAUNCH("join_kernel");
}

}  // namespace

void launch_join_facts(KeyKind kind, const QueryFacts* from, int64_t count, JoinFacts* to, cudaStream_t stream) {
  if (count == 0) return;
  facts_kernel<<<static_cast<unsigned>(divide_up(count, int64_t{kThreads})), kThreads, 0, stream>>>(kind, from, count, to);
  KITH_CUDA_CHECK_LAUNCH("facts_kernel");
}

void launch_join(const JoinTask& task, cudaStream_t stream) {
  if (task.count == 0) return;
  const int64_t p = task.samples.samples;
  if (task.operands.halves == nullptr) return launch<false>(task, int64_t{4} << sample_table_bits(p), stream);
  const bool rows_apart = task.boundary > 0 || 4 * p > kJoinColumns;
  launch<true>(task, (kJoinColumns + (rows_apart ? kJoinRows : 0)) * kJoinStageBytes, stream);
}

}  // namespace kith
