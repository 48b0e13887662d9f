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

constexpr int kLeftRoom = 512;  // pairs that products may leave; more, and all keys are computed
// A block of few threads, where an operand is a stage, and of many.
constexpr int kFewThreads = 128;
constexpr int kManyThreads = 256;
constexpr int blocks_per_processor(int threads) { return threads == kFewThreads ? 5 : 3; }

// A pair that may be the nearest of the sample whose slot it is.
struct LeftPair {
  uint16_t slot;
  uint16_t other;
};

constexpr int kOffered = 0x8000;  // a bit beside the number of a pair that is needed
static_assert(kLeftRoom <= kOffered);

extern __shared__ __align__(128) std::byte shared[];  // operands, then the rest

// A block's memory beside the operands. A slot is where the nearest of a sample is looked for, 2 p of each kind: the
// nearest NEW one of a NEW one, its nearest OLD one, the nearest NEW one of an OLD one.
struct JoinMemory {
  int base;  // behind the operands
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
  static_assert(sizeof(JoinFacts) == 16 && sizeof(LeftPair) == 4);
  // From the array itself, so that the compiler knows which memory it is.
  template <typename T>
  __device__ T* at(int bytes_per_sample) const {
    return reinterpret_cast<T*>(shared + base + bytes_per_sample * p);
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

// join_value() as one operation, product * times + plus; of what does not take part, the largest.
struct Weighed {
  float times;
  float plus;

  __device__ float value(float product) const { return fmaf(product, times, plus); }
};

// One block's join. Its code is kept small: what does not fit the instruction cache takes longer than what it does.
template <int kThreads>
struct Join {
  static constexpr int kGroups = kThreads / kRowThreads;  // of threads that compute a key together

  const JoinTask& task;
  const JoinMemory memory;
  int p;
  JoinCounts counts;
  int first_column;  // of the samples that NEW ones meet: all, or in a merge OLD ones

  __device__ int new_slot(int row, int column) const { return column < counts.fresh ? row : 2 * p + row; }
  __device__ int old_slot(int column) const { return 4 * p + column - counts.fresh; }
  // The sample whose slot it is; none where it is counts.all.
  __device__ int sample_of(int slot) const {
    const int sample = slot < 2 * p ? slot : slot < 4 * p ? slot - 2 * p : counts.fresh + slot - 4 * p;
    return sample < (slot < 4 * p ? counts.fresh : counts.all) ? sample : counts.all;
  }
  __device__ Weighed weighed(int sample, bool takes_part) const {
    if (!takes_part) return {0.0f, HUGE_VALF};
    const float weight = memory.weights()[sample];
    return task.rows.kind == KeyKind::inner_product ? Weighed{-weight, 0.0f} : Weighed{-1.0f, weight};
  }
  // Columns of a tile that a warp has some of, of one kind.
  __device__ bool has_columns(int first_col, bool old) const {
    const int first = first_col + static_cast<int>(threadIdx.x) / 32 * 16;
    return first < counts.all && (old ? first + 16 > counts.fresh && counts.fresh < counts.all : first < counts.fresh);
  }
  __device__ bool is_column(int column, bool old) const {
    return column < counts.all && (column >= counts.fresh) == old;
  }

  // A sample is not compared with itself: its product becomes that of what is farthest.
  __device__ void drop_selves(JoinProducts& products, int first_row, int first_col) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int group = static_cast<int>(threadIdx.x) / 32 + (first_col - first_row) / 16;  // whose rows are my columns
    KITH_UNROLL
    for (int m = 0; m < kRowGroups; ++m) {
      KITH_UNROLL
      for (int n = 0; n < 2; ++n) {
        KITH_UNROLL
        for (int side = 0; side < 2; ++side) {
          if (m == group && lane / 4 == lane % 4 * 2 + side) products[m][n][2 * n + side] = -HUGE_VALF;
        }
      }
    }
  }

  // The least values of a tile's rows among its columns of one kind, and of its OLD columns.
  __device__ void note_least(const JoinProducts& products, int first_row, int first_col, bool old) const {
    float of_rows[2 * kRowGroups];
    KITH_UNROLL
    for (int i = 0; i < 2 * kRowGroups; ++i) of_rows[i] = HUGE_VALF;
    KITH_UNROLL
    for (int n = 0; n < 2; ++n) {
      KITH_UNROLL
      for (int side = 0; side < 2; ++side) {
        const int column = first_col + product_column(n, side);
        const Weighed mine = weighed(column, is_column(column, old));
        KITH_UNROLL
        for (int i = 0; i < 2 * kRowGroups; ++i) {
          of_rows[i] = fminf(of_rows[i], mine.value(products[i / 2][n][2 * (i % 2) + side]));
        }
      }
    }
    float least[2];
    least_of_four_lanes(of_rows, least);
    const int part = static_cast<int>(threadIdx.x) % 4;  // values part, part + 4 of the eight
    KITH_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int row = first_row + product_row(part / 2 + 2 * i, part % 2);
      if (row < counts.fresh && least[i] < HUGE_VALF) {
        atomicMin(memory.least() + (old ? 2 * p : 0) + row, ordered_key(least[i]));
      }
    }
    if (!old) return;
    float of_columns[4] = {HUGE_VALF, HUGE_VALF, HUGE_VALF, HUGE_VALF};
    KITH_UNROLL
    for (int i = 0; i < 2 * kRowGroups; ++i) {
      const int row = first_row + product_row(i / 2, i % 2);
      const Weighed mine = weighed(row, row < counts.fresh);
      KITH_UNROLL
      for (int c = 0; c < 4; ++c) {
        of_columns[c] = fminf(of_columns[c], mine.value(products[i / 2][c / 2][2 * (i % 2) + c % 2]));
      }
    }
    KITH_UNROLL
    for (int c = 0; c < 4; ++c) {
      KITH_UNROLL
      for (int apart = 4; apart < 32; apart *= 2) {
        of_columns[c] = fminf(of_columns[c], __shfl_xor_sync(0xFFFFFFFFu, of_columns[c], apart));
      }
      const int column = first_col + product_column(c / 2, c % 2);
      if (threadIdx.x % 32 < 4 && is_column(column, true) && of_columns[c] < HUGE_VALF) {
        atomicMin(memory.least() + old_slot(column), ordered_key(of_columns[c]));
      }
    }
  }

  // Values up to which a pair may enter the list of a slot's sample; once the least are known, and be its nearest.
  __device__ void set_limits(const OperandFacts& others, bool nearest) const {
#pragma unroll 1
    for (int slot = static_cast<int>(threadIdx.x); slot < 6 * p; slot += kThreads) {
      const int sample = sample_of(slot);
      if (sample == counts.all) continue;
      const JoinFacts facts = memory.facts()[sample];
      const JoinWindow window = join_window(task.rows.kind, task.rows.cols, facts, others);
      float limit = HUGE_VALF;
      if (facts.scale > 0 && !nearest) limit = key_limit(window, key_of_ordered(ordered_of(memory.ends()[sample])));
      if (facts.scale > 0 && nearest) {
        limit = memory.limits()[slot];
        const uint32_t least = memory.least()[slot];
        if (least != kNanKey) limit = fminf(limit, nearest_limit(window, key_of_ordered(least)));
      }
      memory.limits()[slot] = limit;
    }
  }

  // The pairs of `mask`, a bit for each of a thread's values.
  __device__ void leave_pairs(uint32_t mask, int first_row, int first_col, bool for_old, int* count) const {
    while (mask != 0) {
      const int bit = __ffs(static_cast<int>(mask)) - 1;
      mask &= mask - 1;
      const int row = first_row + product_row(bit / 8, bit / 4 % 2);
      const int column = first_col + product_column(bit / 2 % 2, bit % 2);
      if (row >= counts.fresh || row == column) continue;
      const int slot = for_old ? old_slot(column) : new_slot(row, column);
      const int place = atomicAdd(count, 1);
      if (place >= kLeftRoom) continue;
      memory.left()[place] = {static_cast<uint16_t>(slot), static_cast<uint16_t>(for_old ? row : column)};
      atomicAdd(memory.hits() + slot, 1u);
    }
  }

  // What is not above the limits, among columns of one kind. A value that is no number stays.
  __device__ void leave_near(const JoinProducts& products, int first_row, int first_col, bool old, int* count) const {
    uint32_t for_rows = 0;
    uint32_t for_columns = 0;
    Weighed of_columns[4];
    float column_limits[4];
    uint32_t there = 0;
    KITH_UNROLL
    for (int c = 0; c < 4; ++c) {
      const int column = first_col + product_column(c / 2, c % 2);
      const bool mine = is_column(column, old);
      of_columns[c] = weighed(column, mine);
      column_limits[c] = old && mine ? memory.limits()[old_slot(column)] : -HUGE_VALF;
      there |= mine ? 0x11111111u << c : 0;
    }
    KITH_UNROLL
    for (int i = 0; i < 2 * kRowGroups; ++i) {
      const int row = first_row + product_row(i / 2, i % 2);
      const bool mine = row < counts.fresh;
      const float limit = mine ? memory.limits()[(old ? 2 * p : 0) + row] : -HUGE_VALF;
      const Weighed of_row = weighed(row, mine);
      KITH_UNROLL
      for (int c = 0; c < 4; ++c) {
        const float product = products[i / 2][c / 2][2 * (i % 2) + c % 2];
        if (!(of_columns[c].value(product) > limit)) for_rows |= 1u << (4 * i + c);
        if (!(of_row.value(product) > column_limits[c])) for_columns |= 1u << (4 * i + c);
      }
    }
    leave_pairs(for_rows & there, first_row, first_col, false, count);
    if (old) leave_pairs(for_columns & there, first_row, first_col, true, count);
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

  enum class Need : uint8_t { none, key, offer };  // nothing, a key to compare, or one that is offered as it is

  // What becomes of a pair that is left, alone in its slot, before its key is known: none where an offer would change
  // nothing. It is the one with the least value then, unless it has none: its other has no operand.
  __device__ Need need_of(const LeftPair& pair, const OperandFacts& others) const {
    const int sample = sample_of(pair.slot);
    const uint32_t row = memory.ids()[sample];
    const uint32_t neighbor = memory.ids()[pair.other];
    const uint32_t waiting = ordered_of(__ldcg(inbox_place(row, neighbor)));
    const Known known = is_known(task.known, row, neighbor);
    if (known == Known::yes) return Need::none;
    const Need need = known == Known::no ? Need::offer : Need::key;
    const bool sure = memory.limits()[pair.slot] < HUGE_VALF && memory.facts()[pair.other].scale > 0;
    if (task.all_pairs || !sure) return need;
    const JoinWindow window = join_window(task.rows.kind, task.rows.cols, memory.facts()[sample], others);
    return ordered_key(key_below(window, key_of_ordered(memory.least()[pair.slot]))) > waiting ? Need::none : need;
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
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) {
      const LeftPair pair = memory.left()[i];
      const bool alone = task.all_pairs || memory.hits()[pair.slot] == 1;
      const Need need = alone ? need_of(pair, others) : Need::key;
      if (need == Need::none) continue;
      memory.needed()[atomicAdd(needed, 1)] = static_cast<uint16_t>(i | (need == Need::offer ? kOffered : 0));
    }
  }

  // What is not in the list for sure, and nearer than its end.
  __device__ void offer_unknown(int sample, uint64_t neighbor) const {
    if (neighbor >= memory.ends()[sample]) return;
    atomicMin(reinterpret_cast<unsigned long long*>(inbox_place(memory.ids()[sample], row_of(neighbor))),
              static_cast<unsigned long long>(neighbor));
  }

  // Keys of `count` pairs, of those needed or, where there were too many, of all of the join, four threads to a pair.
  __device__ void compute_keys(int count, bool all) const {
    const int width = counts.all - first_column;
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x) / kRowThreads; i < count; i += kGroups) {
      int row = 0;
      int column = 0;
      int slot = 0;
      bool offered = false;
      if (all) {
        row = i / width;
        column = first_column + i % width;
        if (column < counts.fresh && column <= row) continue;
        slot = new_slot(row, column);
      } else {
        const int needed = memory.needed()[i];
        const LeftPair pair = memory.left()[needed & ~kOffered];
        offered = (needed & kOffered) != 0;
        slot = pair.slot;
        row = sample_of(pair.slot);
        column = pair.other;
      }
      const float key = pair_key(task.rows, memory.ids()[row], memory.ids()[column]);
      if (threadIdx.x % kRowThreads != 0) continue;
      if (offered) {
        offer_unknown(row, pack_neighbor(ordered_key(key), memory.ids()[column]));
        continue;
      }
#pragma unroll 1
      for (int side = 0; side < (all ? 2 : 1); ++side) {
        take(slot, row, key, column);
        slot = column < counts.fresh ? column : old_slot(column);
        const int first = row;
        row = column;
        column = first;
      }
    }
  }

  __device__ void offer_nearest() const {
#pragma unroll 1
    for (int slot = static_cast<int>(threadIdx.x); slot < 6 * p; slot += kThreads) {
      if (memory.nearest()[slot] != kPadding) offer(sample_of(slot), memory.nearest()[slot]);
    }
  }
};

template <bool kProducts, int kThreads>
__global__ void __launch_bounds__(kThreads, blocks_per_processor(kThreads))
    join_kernel(const __grid_constant__ JoinTask task, int operand_bytes) {
  __shared__ int left;
  __shared__ int needed;
  __shared__ uint32_t largest[2];  // the bits of the norm and the residual, which are not negative
  const auto p = static_cast<int>(task.samples.samples);
  const JoinMemory memory{operand_bytes, p};
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
  const Join<kThreads> join{task, memory, p, counts, across ? counts.fresh : 0};
  const auto tile_at = [&](int first_row, int first_col) {
    return JoinTile{memory.ids() + first_row, memory.ids() + first_col, min(counts.fresh - first_row, kJoinRows),
                    min(counts.all - first_col, kJoinColumns), first_row == 0 && first_col == 0};
  };
  const uint32_t operands_at = ptx::shared_address(shared);
  if constexpr (kProducts) gather_stage<kThreads>(task.operands, tile_at(0, join.first_column), 0, operands_at);
  if (threadIdx.x == 0) {
    const int among = across ? 0 : counts.fresh * (counts.fresh - 1) / 2;
    atomicAdd(task.pairs + blockIdx.x % kCounters, static_cast<unsigned long long>(among + counts.fresh * old));
  }
#pragma unroll 1
  for (int slot = static_cast<int>(threadIdx.x); slot < 6 * p; slot += kThreads) {
    memory.nearest()[slot] = kPadding;
    memory.least()[slot] = kNanKey;
    memory.hits()[slot] = 0;
  }
  float norm = 0;
  float residual = 0;
#pragma unroll 1
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
  bool all = true;
  if constexpr (kProducts) {
    const OperandFacts others{__uint_as_float(largest[0]), __uint_as_float(largest[1])};
    const bool one_tile = counts.fresh <= kJoinRows && counts.all - join.first_column <= kJoinColumns;
    constexpr int kPart = kPartColumns<kThreads>;
    constexpr bool kParts = kPart < kJoinColumns;  // an operand is one stage then
    JoinProducts products;
#pragma unroll 1
    for (int pass = 0; pass < 2; ++pass) {
      if (pass == 0 || !task.all_pairs) join.set_limits(others, pass == 1);
      if (pass == 1) __syncthreads();
#pragma unroll 1
      for (int first_row = 0; first_row < counts.fresh; first_row += kJoinRows) {
#pragma unroll 1
        for (int first_col = join.first_column; first_col < counts.all; first_col += kJoinColumns) {
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
            if (kParts || gathers) {
              clear_products(products);
              if constexpr (kParts) {
                multiply_stage(tile, part, stage_steps(task.rows.cols, 0), operands_at, products);
              } else {
                multiply_stages<kThreads>(task.operands, task.rows.cols, tile, operands_at, products);
              }
              if (!across) join.drop_selves(products, first_row, first_col + part);
            }
#pragma unroll 1
            for (int kind = 0; kind < 2; ++kind) {
              if (!join.has_columns(first_col + part, kind == 1)) continue;
              if (pass == 0) {
                join.note_least(products, first_row, first_col + part, kind == 1);
              } else {
                join.leave_near(products, first_row, first_col + part, kind == 1, &left);
              }
            }
          }
        }
      }
      __syncthreads();
    }
    all = left > kLeftRoom;
    if (!all) join.choose_needed(left, others, &needed);
    __syncthreads();
  }
  join.compute_keys(all ? counts.fresh * (counts.all - join.first_column) : needed, all);
  __syncthreads();
  join.offer_nearest();
}

__global__ void __launch_bounds__(kManyThreads)
    facts_kernel(KeyKind kind, const QueryFacts* from, int64_t count, JoinFacts* to) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kManyThreads + threadIdx.x;
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
  facts_kernel<<<static_cast<unsigned>(divide_up(count, int64_t{kManyThreads})), kManyThreads, 0, stream>>>(kind, from, count, to);
  KITH_CUDA_CHECK_LAUNCH("facts_kernel");
}

void launch_join(const JoinTask& task, cudaStream_t stream) {
  if (task.count == 0) return;
  const int64_t p = task.samples.samples;
  if (task.operands.halves == nullptr) {
    return launch<false, kManyThreads>(task, int64_t{4} << sample_table_bits(p), stream);
  }
  const bool rows_apart = task.boundary > 0 || 4 * p > kJoinColumns;
  const int64_t operand_bytes = (kJoinColumns + (rows_apart ? kJoinRows : 0)) * kJoinStageBytes;
  if (task.operands.chunks <= kJoinStageChunks) return launch<true, kFewThreads>(task, operand_bytes, stream);
  launch<true, kManyThreads>(task, operand_bytes, stream);
}

}  // namespace kith
