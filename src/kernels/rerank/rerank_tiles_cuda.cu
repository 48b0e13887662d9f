// Eight threads compute a key, two lanes of the canonical sum each: lanes t and t + 8, so that the lanes eight apart
// are added without an exchange. What a thread wants of 32 columns lies together, in 16 bytes; eight threads then read
// 128 bytes of a row, which no two of them meet in a bank.
//
// Widening to double takes 8 cycles of a warp, of which there are 16 a row and thread: too many. A float's bits shifted
// to where a double has exponent and mantissa are the double x 2^-896, subnormals and zero included; the fused
// multiply-add that follows takes the power back, with one rounding, as if x had been widened. So half of the values
// are widened by integer instructions. No value is infinite or NaN: such rows have no windows that are sure.
//
// Time is that of the instructions: about 100 for four candidates, 150 for a query and tile.
#include "kernels/rerank/rerank_tiles_cuda.hpp"

#include "core/ordered_key.hpp"
#include "cuda/chained_launch.hpp"
#include "cuda/ptx.hpp"
#include "cuda/shared_memory.hpp"
#include "kernels/distance/kept_rows_cuda.hpp"
#include "kernels/rerank/candidate_key_cuda.hpp"
#include "kernels/select/device_warp_cuda.hpp"
#include "kernels/select/lane_array.hpp"

namespace kith {
namespace {

constexpr int kThreads = kRowTileWarps * 32;
constexpr int kKeyThreads = 8;                  // that compute a key
constexpr int kKeysAtATime = 32 / kKeyThreads;  // of a warp
constexpr int kUnitValues = 4;                  // that a thread has of a unit: two lanes of two steps
constexpr int kSortThreads = 256;

enum class Sum { differences, unit_differences, products };

// Whether value i of a thread is widened by integer instructions. Cosine's norms do not bear the power of two.
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

// The canonical sum of a row, in all of its eight threads.
template <Sum kSum, int kUnits>
__device__ double resident_row_sum(const double (&query)[kUnits * kUnitValues], const float4* row,
                                   double inverse_norm) {
  float4 fours[kUnits];  // all loads first
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
        lane = fma(q, by_integers<kSum>(i) ? shifted_float(values[i]) : static_cast<double>(values[i]), lane);
      } else {
        // The sign of a difference does not matter.
        const double difference = kSum == Sum::unit_differences ? q - static_cast<double>(values[i]) * inverse_norm
                                  : by_integers<kSum>(i)        ? fma(shifted_float(values[i]), two_to_896(), -q)
                                                                : q - static_cast<double>(values[i]);
        lane = fma(difference, difference, lane);
      }
    }
  }
  double sum = lanes[0] + lanes[1];
  KITH_UNROLL
  for (int apart = kKeyThreads / 2; apart > 0; apart /= 2) sum += __shfl_xor_sync(kAllLanes, sum, apart);
  return sum;
}

// Copies up to 128 columns, padded with zeros: column 32 u + 8 i + t to value i of thread t in unit u.
template <int kUnits>
__device__ void copy_values(float* to, const float* from, int cols) {
  const int lane = lane_index();
  const uint32_t place = ptx::shared_address(to) + static_cast<uint32_t>(lane % 8 * 16 + lane / 8 * 4);
  const float* const mine = from + lane;
  KITH_UNROLL
  for (int unit = 0; unit < kUnits; ++unit) {
    ptx::copy_async_4(place + static_cast<uint32_t>(unit * kRowTileUnitCols * 4), mine + unit * kRowTileUnitCols,
                      unit * kRowTileUnitCols + lane < cols);
  }
}

// A query's marks in the tile, a word for each lane, and what goes with them.
struct QueryMarks {
  uint32_t word = 0;
  uint32_t limit = 0;
};

template <Sum kSum, int kUnits>
__global__ void __launch_bounds__(kThreads, 1)
    rerank_tiles_kernel(RerankTask task, RowTiles tiles, CandidateLists lists) {
  extern __shared__ __align__(16) float shared[];
  constexpr int kRowValues = kUnits * kRowTileUnitCols;
  const int lane = lane_index();
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int cols = static_cast<int>(task.cols);
  float* const rows = shared;
  float* const values = shared + tiles.rows() * kRowValues + warp * kRowValues;
  auto* const places =
      reinterpret_cast<uint16_t*>(shared + (tiles.rows() + kRowTileWarps) * kRowValues) + warp * tiles.rows();

  const int tile = static_cast<int>(blockIdx.x) % tiles.count;
  const int64_t group = blockIdx.x / static_cast<unsigned>(tiles.count);
  const int first_operand = tile * tiles.operand_tiles;
  const int64_t first_row = int64_t{first_operand} * kOperandTile;
  for (int i = warp; i < tiles.rows(); i += kRowTileWarps) {
    const bool there = first_row + i < task.base.count;
    copy_values<kUnits>(rows + i * kRowValues, task.base.row<float>(there ? first_row + i : 0), there ? cols : 0);
  }
  ptx::copy_async_commit();

  const int end = static_cast<int>((group + 1) * task.queries.count / tiles.query_groups);
  const int words = static_cast<int>(mark_words(task.base.count));
  // A word for each lane; half a word where these are few, so that no lane has many marks.
  const int first_word = first_operand / 2 * 8;
  const bool halves = divide_up(first_operand + tiles.operand_tiles, 2) * 8 - first_word <= 16;
  const int word = first_word + (halves ? lane % 16 : lane);
  const uint32_t bits_here = !halves ? 0xFFFFFFFFu : lane < 16 ? 0xFFFFu : 0xFFFF0000u;
  const int word_operand = word / 8 * 2 + word % 2;
  const bool has_word =
      word < words && word_operand >= first_operand && word_operand < first_operand + tiles.operand_tiles;
  const auto word_row = static_cast<uint32_t>(marked_row(word, 0) - first_row);
  const uint32_t lanes_before = (1u << lane) - 1;
  QueryMarks next;
  const auto fetch = [&](int query) {
    next = {};
    if (query < end) {
      copy_values<kUnits>(values, static_cast<const float*>(task.queries.data) + query * task.queries.stride, cols);
      next.limit = task.key_limits[query];
      if (has_word) next.word = task.marks[int64_t{query} * words + word] & bits_here;
    }
    ptx::copy_async_commit();
  };

  ptx::wait_for_kernel_before();
  int query = static_cast<int>(group * task.queries.count / tiles.query_groups) + warp;
  fetch(query);
  ptx::copy_async_wait<1>();
  __syncthreads();  // the tile has come for all
  for (; query < end; query += kRowTileWarps) {
    const uint32_t limit = next.limit;
    const uint32_t marks = limit == 0 ? 0 : next.word;
    const double inverse_q = kSum == Sum::unit_differences ? task.queries.inverse_norms[query] : 1.0;
    ptx::copy_async_wait<0>();
    __syncwarp();
    double resident[kUnits * kUnitValues];
    KITH_UNROLL
    for (int unit = 0; unit < kUnits; ++unit) {
      const float4 four = reinterpret_cast<const float4*>(values)[unit * kKeyThreads + lane % kKeyThreads];
      const float stored[kUnitValues] = {four.x, four.y, four.z, four.w};
      KITH_UNROLL
      for (int i = 0; i < kUnitValues; ++i) {
        double q = static_cast<double>(stored[i]);
        if (kSum == Sum::unit_differences) q *= inverse_q;
        if (kSum == Sum::products && by_integers<kSum>(i)) q *= two_to_896();
        ptx::keep_in_registers(q);  // else it would be widened anew for each candidate
        resident[unit * kUnitValues + i] = q;
      }
    }
    __syncwarp();
    fetch(query + kRowTileWarps);

    int count = 0;
    for (uint32_t bits = marks; const unsigned lanes = __ballot_sync(kAllLanes, bits != 0); bits &= bits - 1) {
      const auto bit = static_cast<uint32_t>(__ffs(static_cast<int>(bits))) - 1;
      if (bits != 0) {
        places[count + __popc(lanes & lanes_before)] = static_cast<uint16_t>(word_row + (bit & 30) * 4 + (bit & 1));
      }
      count += __popc(lanes);
    }
    if (count == 0) continue;
    uint32_t start = 0;
    if (lane == 0) start = atomicAdd(&lists.counts[query], static_cast<uint32_t>(count));
    __syncwarp();
    for (int first = 0; first < count; first += 32) {
      const int here = min(count - first, 32);
      double sum = 0;
      for (int step = 0; step * kKeysAtATime < here; ++step) {
        const int i = step * kKeysAtATime + lane / kKeyThreads;
        const int row = places[first + (i < here ? i : 0)];
        double inverse_x = 1.0;
        if constexpr (kSum == Sum::unit_differences) {
          inverse_x = task.base.inverse_norms[min(first_row + row, task.base.count - 1)];
        }
        const auto* const row_values = reinterpret_cast<const float4*>(rows + row * kRowValues) + lane % kKeyThreads;
        const double found = resident_row_sum<kSum, kUnits>(resident, row_values, inverse_x);
        if (lane % kKeyThreads == step) sum = found;
      }
      const int i = lane % kKeyThreads * kKeysAtATime + lane / kKeyThreads;  // whose sum that is
      const uint32_t at = __shfl_sync(kAllLanes, start, 0) + static_cast<uint32_t>(first + i);
      if (i < here && at < static_cast<uint32_t>(task.room)) {
        const int64_t row = first_row + places[first + i];
        uint64_t entry = kPadding;
        if (row < task.base.count) {
          const double inverse_x = kSum == Sum::unit_differences ? task.base.inverse_norms[row] : 1.0;
          const uint32_t number =
              task.numbers == nullptr ? task.first_row + static_cast<uint32_t>(row) : task.numbers[row];
          const uint32_t ordered = ordered_key(candidate_key(task.kind, sum, inverse_q, inverse_x));
          const bool kept = task.kept == nullptr || is_kept(task.kept, number);
          if (kept && ordered <= limit) entry = pack_neighbor(ordered, number);
        }
        lists.entries[query * task.room + at] = entry;
      }
      __syncwarp();
    }
  }
}

// Sorts up to 32 * kRegisters entries and writes the first k; false, and nothing written, where they must be k and are
// fewer.
template <int kRegisters>
__device__ bool sort_and_write(const uint64_t* list, int count, const RerankTask& task, uint64_t* neighbors) {
  const int lane = lane_index();
  uint64_t entries[kRegisters];
  KITH_UNROLL
  for (int i = 0; i < kRegisters; ++i) entries[i] = lane + 32 * i < count ? list[lane + 32 * i] : kPadding;
  run_schedule<DeviceWarp<uint64_t>, SortSchedule<kRegisters>>(entries);
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

__global__ void __launch_bounds__(kSortThreads)
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
    } else if (count <= 256) {
      sure = sort_and_write<8>(list, count, task, neighbors);
    } else {
      sure = sort_and_write<kRowTileMostRoom / 32>(list, count, task, neighbors);
    }
  }
  if (!sure && threadIdx.x % 32 == 0) failed.queries[atomicAdd(failed.count, 1u)] = static_cast<uint32_t>(query);
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
  allow_all_shared_memory(reinterpret_cast<const void*>(kernel));
  launch_chained({int64_t{tiles.count} * tiles.query_groups, kThreads, tiles.shared_bytes(), stream},
                 "launch of rerank_tiles_kernel", kernel, task, tiles, lists);
  launch_chained({divide_up(task.queries.count, kSortThreads / 32), kSortThreads, 0, stream},
                 "launch of sort_candidates_kernel", sort_candidates_kernel, task, lists, failed);
}

}  // namespace kith
