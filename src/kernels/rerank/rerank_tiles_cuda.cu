// Eight threads compute a key, two lanes of the canonical sum each: lanes t and t + 8, so that these are added without
// an exchange. A thread's values of 32 columns are contiguous, 16 bytes; eight threads then read 128 bytes of a row
// without bank conflicts.
//
// Widening to double keeps a scheduler's conversion unit busy for 8 cycles. A float's bits shifted to where a double
// has exponent and mantissa are the double x 2^-896, subnormals and zero included; the fused multiply-add that follows
// takes the power back, with one rounding, as if x had been widened. So three values in eight are widened by integer
// instructions instead. No value is infinite or NaN: such rows have no windows that are sure.
//
// Time is bound by instructions: about 86 for four candidates, and 200 per query and tile.
#include "kernels/rerank/rerank_cuda.hpp"

#include "core/ordered_key.hpp"
#include "cuda/launch.hpp"
#include "cuda/ptx.hpp"
#include "cuda/shared_memory.hpp"
#include "cuda/vector_access.hpp"
#include "cuda/warp.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/select/device_warp_cuda.hpp"
#include "kernels/select/lane_array.hpp"
#include "rows/kept_rows_cuda.hpp"

namespace kith {
namespace {

constexpr int kThreads = kRowTileWarps * 32;
constexpr int kKeyThreads = 8;                   // threads per key
constexpr int kKeysAtATime = 32 / kKeyThreads;   // keys per warp
constexpr int kUnitValues = 4;                   // values of a unit per thread: two lanes, two steps
constexpr int kPlacesBeyond = 2 * kKeysAtATime;  // read ahead past the last candidate
constexpr int kSortThreads = 256;

enum class Sum { differences, unit_differences, products };

// Whether value i of a thread's is widened by integer instructions. Cosine's norms do not bear the power of two.
template <Sum kSum>
__device__ constexpr bool by_integers(int i) {
  return kSum != Sum::unit_differences && i % 2 == 0;
}
__device__ double two_to_896() { return __hiloint2double((896 + 1023) << 20, 0); }

// x 2^-896.
__device__ double shifted_float(float x) {
  const int bits = __float_as_int(x);
  return __hiloint2double((bits >> 3) & static_cast<int>(0x8FFFFFFF), bits << 29);
}

// The canonical sum of a row, valid in all of its eight threads.
template <Sum kSum, int kUnits>
__device__ double resident_row_sum(const double (&query)[kUnits * kUnitValues], const float4* row,
                                   double inverse_norm) {
  float4 fours[kUnits];  // issue all loads first
  KITH_UNROLL
  for (int unit = 0; unit < kUnits; ++unit) fours[unit] = row[unit * kKeyThreads];
  double lanes[2] = {};
  KITH_UNROLL
  for (int unit = 0; unit < kUnits; ++unit) {
    const float values[kUnitValues] = {fours[unit].x, fours[unit].y, fours[unit].z, fours[unit].w};
    KITH_UNROLL
    for (int i = 0; i < kUnitValues; ++i) {
      const double q = query[unit * kUnitValues + i];
      double& lane = lanes[i % 2];
      if constexpr (kSum == Sum::products) {
        lane = fma(
            q, by_integers<kSum>(unit * kUnitValues + i) ? shifted_float(values[i]) : static_cast<double>(values[i]),
            lane);
      } else {
        // The sign of a difference does not matter.
        const double difference = kSum == Sum::unit_differences ? q - static_cast<double>(values[i]) * inverse_norm
                                  : by_integers<kSum>(unit * kUnitValues + i)
                                      ? fma(shifted_float(values[i]), two_to_896(), -q)
                                      : q - static_cast<double>(values[i]);
        lane = fma(difference, difference, lane);
      }
    }
  }
  return warp_sum<kKeyThreads>(lanes[0] + lanes[1]);
}

template <Sum kSum>
__device__ float key_of_sum(KeyKind kind, double sum, double inverse_q, double inverse_x) {
  if constexpr (kSum == Sum::products) return canonical_key<KeyKind::inner_product>(sum, 0, 0);
  if constexpr (kSum == Sum::unit_differences) return canonical_key<KeyKind::cosine>(sum, inverse_q, inverse_x);
  return kind == KeyKind::l2 ? canonical_key<KeyKind::l2>(sum, 0, 0) : canonical_key<KeyKind::squared_l2>(sum, 0, 0);
}

// Copies up to 128 columns, padded with zeros: column 32 u + 8 i + t to value i of thread t in unit u. `from` is this
// lane's first column.
template <int kUnits>
__device__ void copy_values(float* to, const float* from, int cols) {
  const int lane = lane_index();
  const uint32_t place = ptx::shared_address(to) + static_cast<uint32_t>(lane % 8 * 16 + lane / 8 * 4);
  KITH_UNROLL
  for (int unit = 0; unit < kUnits; ++unit) {
    ptx::copy_async_4(place + static_cast<uint32_t>(unit * kRowTileUnitCols * 4), from + unit * kRowTileUnitCols,
                      unit * kRowTileUnitCols + lane < cols);
  }
}

// The marks of one query in a tile, a word for every two columns in eight of an operand tile.
template <int kWords>
struct TileMarks {
  uint32_t words[kWords];

  // From the words of the pairs of operand tiles that the tile has a part of; other tiles' are left out.
  __device__ void load(const uint32_t* from, int pairs, int first_operand, int operand_tiles) {
    KITH_UNROLL
    for (int i = 0; i < kWords; i += 4) {
      uint4 four = {};
      if (i < pairs * 8) four = load_vector<uint4>(from + i);
      const int operand = first_operand / 2 * 2 + i / 8 * 2;
      const bool even = operand >= first_operand && operand < first_operand + operand_tiles;
      const bool odd = operand + 1 >= first_operand && operand + 1 < first_operand + operand_tiles;
      words[i] = even ? four.x : 0;
      words[i + 1] = odd ? four.y : 0;
      words[i + 2] = even ? four.z : 0;
      words[i + 3] = odd ? four.w : 0;
    }
  }
  __device__ int count() const {
    int sum = 0;
    KITH_UNROLL
    for (const uint32_t word : words) sum += __popc(word);
    return sum;
  }
  // `first_place` is that of the first pair's first row in the tile; it may be negative.
  __device__ void list(int first_place, uint16_t* places) const {
    KITH_UNROLL
    for (int i = 0; i < kWords; ++i) {
      const int place = first_place + static_cast<int>(marked_row(i, 0));
      for (uint32_t bits = words[i]; bits != 0; bits &= bits - 1) {
        const int bit = __ffs(static_cast<int>(bits)) - 1;
        *places++ = static_cast<uint16_t>(place + (bit & 30) * 4 + (bit & 1));
      }
    }
  }
};

// The widened values of a query that belong to one of the eight threads.
template <Sum kSum, int kUnits>
__device__ void widen_values(const float* values, double inverse_norm, double (&resident)[kUnits * kUnitValues]) {
  KITH_UNROLL
  for (int unit = 0; unit < kUnits; ++unit) {
    const float4 four = vectors<float4>(values)[unit * kKeyThreads + lane_index() % kKeyThreads];
    const float stored[kUnitValues] = {four.x, four.y, four.z, four.w};
    KITH_UNROLL
    for (int i = 0; i < kUnitValues; ++i) {
      double q = i % 2 == 0 ? shifted_float(stored[i]) * two_to_896() : static_cast<double>(stored[i]);
      if (kSum == Sum::unit_differences) q *= inverse_norm;
      if (kSum == Sum::products && by_integers<kSum>(unit * kUnitValues + i)) q *= two_to_896();
      ptx::keep_in_registers(q);  // otherwise the compiler widens it again for each candidate
      resident[unit * kUnitValues + i] = q;
    }
  }
}

template <Sum kSum, int kUnits>
__global__ void __launch_bounds__(kThreads, 1)
    rerank_tiles_kernel(RerankTask task, RowTiles tiles, CandidateLists lists) {
  extern __shared__ __align__(16) float shared[];
  constexpr int kRowValues = kUnits * kRowTileUnitCols;
  const int lane = lane_index();
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int cols = static_cast<int>(task.cols);
  const int row_count = static_cast<int>(task.base.count);
  float* const rows = shared;
  float* const values = shared + (tiles.rows() + warp) * kRowValues;
  auto* const places = vectors<uint16_t>(shared + (tiles.rows() + kRowTileWarps) * kRowValues) + warp * tiles.places();

  const int first_operand = static_cast<int>(blockIdx.x) % tiles.count * tiles.operand_tiles;
  const int first_row = first_operand * kOperandTile;
  for (int i = warp; i < tiles.rows(); i += kRowTileWarps) {
    const bool there = first_row + i < row_count;
    copy_values<kUnits>(rows + i * kRowValues, task.base.row<float>(there ? first_row + i : 0) + lane,
                        there ? cols : 0);
  }
  ptx::copy_async_commit();

  // A block's queries are cut into a run for each warp.
  const int64_t runs = int64_t{tiles.query_groups} * kRowTileWarps;
  const int64_t run = int64_t{blockIdx.x} / tiles.count * kRowTileWarps + warp;
  const int end = static_cast<int>((run + 1) * task.queries.count / runs);
  const int words = static_cast<int>(mark_words(task.base.count));
  const int pairs = min((first_operand + tiles.operand_tiles + 1) / 2, words / 8) - first_operand / 2;
  int begin = static_cast<int>(run * task.queries.count / runs);
  const float* next_values = static_cast<const float*>(task.queries.data) + begin * task.queries.stride + lane;
  uint64_t* list = lists.entries + begin * task.room;
  const auto fetch_next = [&] {
    copy_values<kUnits>(values, next_values, cols);
    next_values += task.queries.stride;
    ptx::copy_async_commit();
  };

  for (int i = lane; i < tiles.places(); i += 32) places[i] = 0;  // none is ever beyond the tile
  ptx::copy_async_wait<0>();
  ptx::wait_for_kernel_before();
  __syncthreads();  // the tile is loaded
  int taken = 0;
  for (; begin < end; begin += taken) {
    fetch_next();
    // A lane lists the places of a query's candidates; queries that too few places are left for come next time.
    TileMarks<row_tile_words(kUnits)> marks = {};
    const int own_query = begin + lane;
    uint32_t own_limit = 0;
    if (own_query < end) own_limit = task.key_limits[own_query];
    if (own_limit != 0) {
      marks.load(task.marks + int64_t{own_query} * words + first_operand / 2 * 8, pairs, first_operand,
                 tiles.operand_tiles);
    }
    const int own_count = marks.count();
    const int own_end = warp_inclusive(own_count);
    const bool fits = own_query < end && own_end <= tiles.places() - kPlacesBeyond;
    taken = __popc(__ballot_sync(kAllLanes, fits));
    uint32_t own_start = 0;
    if (fits && own_count > 0) {
      own_start = atomicAdd(&lists.counts[own_query], static_cast<uint32_t>(own_count));
      marks.list(-(first_operand % 2) * kOperandTile, places + own_end - own_count);
    }
    __syncwarp();

    for (int j = 0; j < taken; ++j, list += task.room) {
      const int count = __shfl_sync(kAllLanes, own_count, j);
      const uint16_t* const mine = places + __shfl_sync(kAllLanes, own_end, j) - count;
      const uint32_t start = __shfl_sync(kAllLanes, own_start, j);
      const uint32_t limit = __shfl_sync(kAllLanes, own_limit, j);
      const double inverse_q = kSum == Sum::unit_differences ? task.queries.inverse_norms[begin + j] : 1.0;
      double resident[kUnits * kUnitValues];
      ptx::copy_async_wait<0>();
      __syncwarp();
      widen_values<kSum, kUnits>(values, inverse_q, resident);
      __syncwarp();
      if (j + 1 < taken) fetch_next();
      for (int first = 0; first < count; first += 32) {
        const int here = min(count - first, 32);
        double sum = 0;
        const uint16_t* next_place = mine + first + lane / kKeyThreads;
        int next = *next_place;
        for (int step = 0; step * kKeysAtATime < here; ++step) {
          const int place = next;  // of a candidate, or where there are no more, one that is not used
          next_place += kKeysAtATime;
          next = *next_place;
          double inverse_x = 1.0;
          if constexpr (kSum == Sum::unit_differences) {
            inverse_x = task.base.inverse_norms[min(first_row + place, row_count - 1)];
          }
          const auto* const row = vectors<const float4>(rows + place * kRowValues) + lane % kKeyThreads;
          const double found = resident_row_sum<kSum, kUnits>(resident, row, inverse_x);
          if (lane % kKeyThreads == step) sum = found;
        }
        const int i = lane % kKeyThreads * kKeysAtATime + lane / kKeyThreads;  // whose sum that is
        const uint32_t at = start + static_cast<uint32_t>(first + i);
        if (i < here && at < static_cast<uint32_t>(task.room)) {
          const int row = first_row + mine[first + i];
          uint64_t entry = kPadding;
          if (row < row_count) {
            const double inverse_x = kSum == Sum::unit_differences ? task.base.inverse_norms[row] : 1.0;
            const uint32_t ordered = ordered_key(key_of_sum<kSum>(task.kind, sum, inverse_q, inverse_x));
            uint32_t number = task.first_row + static_cast<uint32_t>(row);
            bool kept = ordered <= limit;
            if (task.numbers != nullptr || task.kept != nullptr) {
              if (task.numbers != nullptr) number = task.numbers[row];
              kept = kept && (task.kept == nullptr || is_kept(task.kept, number));
            }
            if (kept) entry = pack_neighbor(ordered, number);
          }
          list[at] = entry;
        }
      }
    }
    __syncwarp();  // before the places are overwritten
  }
}

// A warp of 32-bit values, for lane_array.hpp.
struct NarrowWarp {
  using Value = uint32_t;
  using Flag = bool;

  static __device__ Flag less(Value a, Value b) { return a < b; }
  static __device__ Value pick(Flag flag, Value a, Value b) { return flag ? a : b; }
  static __device__ Flag differ(Flag a, Flag b) { return a != b; }
  static __device__ Flag lane_has(int bit) { return (lane_index() & bit) != 0; }
  static __device__ Value shuffle_xor(Value value, int mask) { return __shfl_xor_sync(kAllLanes, value, mask); }
};

// Odd-even transposition sort, for entries that are nearly sorted. Place lane + 32 i is in
// register i.
template <int kRegisters>
__device__ void finish_sort(uint64_t (&entries)[kRegisters]) {
  const int lane = lane_index();
  bool changed = true;
  while (__any_sync(kAllLanes, changed)) {
    changed = false;
    KITH_UNROLL
    for (int odd = 0; odd < 2; ++odd) {
      const bool lower = lane % 2 == odd;  // of its pair
      const int partner = lower ? (lane + 1) % 32 : (lane + 31) % 32;
      uint64_t others[kRegisters];
      KITH_UNROLL
      for (int i = 0; i < kRegisters; ++i) others[i] = __shfl_sync(kAllLanes, entries[i], partner);
      KITH_UNROLL
      for (int i = 0; i < kRegisters; ++i) {
        uint64_t other = others[i];
        if (odd == 1 && lane == 31) other = i + 1 < kRegisters ? others[(i + 1) % kRegisters] : kPadding;
        if (odd == 1 && lane == 0) other = i > 0 ? others[(i + kRegisters - 1) % kRegisters] : 0;
        const bool exchange = lower ? other < entries[i] : entries[i] < other;
        changed = changed || exchange;
        if (exchange) entries[i] = other;
      }
    }
  }
}

// Sorts words of the leading bits of keys, with the place in the list below: half the registers and instructions of
// whole entries. The few entries that agree in these bits are ordered afterwards.
template <int kRegisters>
__device__ void sort_listed(const uint64_t* list, int count, uint64_t (&entries)[kRegisters]) {
  constexpr int kPlaceBits = kRegisters <= 8 ? 8 : 9;
  static_assert(32 * kRegisters <= 1 << kPlaceBits);
  constexpr uint32_t kNone = 0xFFFFFFFFu;
  const int lane = lane_index();
  uint32_t keys[kRegisters];  // kNone for padding: no entry of a row has it
  KITH_UNROLL
  for (int i = 0; i < kRegisters; ++i) {
    keys[i] = kNone;
    if (lane + 32 * i < count) keys[i] = ordered_of(list[lane + 32 * i]);
  }
  uint32_t least = kNone;
  uint32_t most = 0;
  KITH_UNROLL
  for (int i = 0; i < kRegisters; ++i) {
    least = min(least, keys[i]);
    most = max(most, keys[i] == kNone ? 0 : keys[i]);
  }
  least = __reduce_min_sync(kAllLanes, least);
  most = __reduce_max_sync(kAllLanes, most);
  const uint32_t range = most > least ? most - least : 0;
  const int shift = max(32 - __clz(static_cast<int>(range)) - (31 - kPlaceBits), 0);
  KITH_UNROLL
  for (int i = 0; i < kRegisters; ++i) {
    const auto place = static_cast<uint32_t>(lane + 32 * i);
    if (keys[i] != kNone) keys[i] = (keys[i] - least) >> shift << kPlaceBits | place;
  }
  run_schedule<NarrowWarp, SortSchedule<kRegisters>>(keys);
  bool same = false;
  KITH_UNROLL
  for (int i = 0; i < kRegisters; ++i) {
    entries[i] = kPadding;
    if (keys[i] != kNone) entries[i] = list[keys[i] & ((1u << kPlaceBits) - 1)];
    uint32_t next = __shfl_down_sync(kAllLanes, keys[i], 1);
    const uint32_t after = __shfl_sync(kAllLanes, keys[(i + 1) % kRegisters], 0);  // of the next register
    if (lane == 31) next = i + 1 < kRegisters ? after : kNone;
    same = same || (next != kNone && next >> kPlaceBits == keys[i] >> kPlaceBits);
  }
  if (__any_sync(kAllLanes, same)) finish_sort(entries);
}

// Sorts up to 32 * kRegisters entries and writes the first k; false, and nothing written, where they must be k and are
// fewer.
template <int kRegisters>
__device__ bool sort_and_write(const uint64_t* list, int count, const RerankTask& task, uint64_t* neighbors) {
  const int lane = lane_index();
  uint64_t entries[kRegisters];
  sort_listed(list, count, entries);
  bool missing = count < task.k;
  KITH_UNROLL
  for (int i = 0; i < kRegisters; ++i) missing = missing || (lane + 32 * i == task.k - 1 && entries[i] == kPadding);
  if (!task.pads && __any_sync(kAllLanes, missing)) return false;
  KITH_UNROLL
  for (int i = 0; i < kRegisters; ++i) {
    if (lane + 32 * i < task.k) neighbors[lane + 32 * i] = entries[i];
  }
  for (int64_t i = 32 * kRegisters + lane; i < task.k; i += 32) neighbors[i] = kPadding;
  return true;
}

__global__ void __launch_bounds__(kSortThreads, 5)
    sort_candidates_kernel(RerankTask task, CandidateLists lists, FailedQueries failed) {
  const int64_t query = static_cast<int64_t>(blockIdx.x) * (kSortThreads / 32) + threadIdx.x / 32;
  ptx::wait_for_kernel_before();
  if (query >= task.queries.count) return;
  const uint32_t counted = lists.counts[query];
  const uint64_t* const list = lists.entries + query * task.room;
  uint64_t* const neighbors = task.neighbors + query * task.k;
  bool sure = task.key_limits[query] != 0 && counted <= task.room;
  if (sure) {
    const int count = static_cast<int>(counted);
    if (count <= 32) {
      sure = sort_and_write<1>(list, count, task, neighbors);
    } else if (count <= 64) {
      sure = sort_and_write<2>(list, count, task, neighbors);
    } else if (count <= 128) {
      sure = sort_and_write<4>(list, count, task, neighbors);
    } else if (count <= 160) {
      sure = sort_and_write<5>(list, count, task, neighbors);
    } else if (count <= 192) {
      sure = sort_and_write<6>(list, count, task, neighbors);
    } else if (count <= 256) {
      sure = sort_and_write<8>(list, count, task, neighbors);
    } else {
      sure = sort_and_write<kRowTileMostRoom / 32>(list, count, task, neighbors);
    }
  }
  if (!sure && threadIdx.x % 32 == 0) failed.add(query);
}

template <Sum kSum>
auto kernel_for(int units) {
  return units == 2 ? rerank_tiles_kernel<kSum, 2> : rerank_tiles_kernel<kSum, kRowTileMostUnits>;
}

auto kernel_for(KeyKind kind, int units) {
  if (kind == KeyKind::inner_product) return kernel_for<Sum::products>(units);
  return kind == KeyKind::cosine ? kernel_for<Sum::unit_differences>(units) : kernel_for<Sum::differences>(units);
}

}  // namespace

void launch_rerank_tiles(const RerankTask& task, const RowTiles& tiles, const CandidateLists& lists,
                         const FailedQueries& failed, cudaStream_t stream) {
  if (task.queries.count == 0) return;
  const auto kernel = kernel_for(task.kind, tiles.units);
  allow_all_shared_memory(kernel);
  const Grid grid = Grid::of(int64_t{tiles.count} * tiles.query_groups, kThreads).with_shared(tiles.shared_bytes());
  launch(kernel, grid.chained(), stream, task, tiles, lists);
  launch(sort_candidates_kernel, Grid::of(divide_up(task.queries.count, kSortThreads / 32), kSortThreads).chained(),
         stream, task, lists, failed);
}

}  // namespace kith
