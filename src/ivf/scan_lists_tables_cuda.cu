// The scan of lists by lookup tables, for lists that hardly any queries share: decoding would serve one of them only.
//
// A block makes a table of one query and list in shared memory, of the squared distances of the residual query's parts to
// all codewords, and looks the vectors' codes up in it, a thread for each vector. Codewords are the halves of the other
// scans, queries are f32: bounds are those of a query that was hardly moved. Bound by shared memory: about 3.5 cycles of
// it for the lookups of 32 vectors in one part.
#include "ivf/scan_engines_cuda.hpp"

#include "cuda/chained_launch.hpp"
#include "cuda/device_core.hpp"
#include "cuda/ptx.hpp"
#include "cuda/shared_memory.hpp"
#include "ivf/decode_four_cuda.hpp"
#include "ivf/scan_item_cuda.hpp"
#include "ivf/scan_units.hpp"
#include "kernels/distance/kept_rows_cuda.hpp"

#include <cmath>

namespace kith {
namespace {

constexpr int kThreads = 256;  // as many as there are codewords
constexpr int kBlocks = 5;     // of a multiprocessor
constexpr int kMostCols = kNarrowSteps * 16;
constexpr int64_t kMostParts = 64;

// What a block knows of its query and list.
struct TablePair {
  float query[kMostCols];  // less the centre, scaled
  float squares[kMostCols / 32];
  PairBounds bounds;
  float limit;  // of the second pass; NaN: nothing is within reach
  float* values;
};

// By the thread that has it; the others make the table meanwhile.
template <bool kFirst>
__device__ void bound_pair(const ScanListsTask& task, const ScanItem& item, const ProbePair& pair, TablePair& shared) {
  double square = 0;
  for (const float part : shared.squares) square += part;
  const CodeFormat& format = task.lists.codec.format;
  const ListFacts facts = task.prepared.facts[item.list];
  const PairBounds bounds = table_bounds(format.cols, format.parts, facts, square);
  const bool sure = bounds.sure();
  if (!sure) task.unsure[pair.query] = 1;
  atomicMax(reinterpret_cast<int*>(&task.worst[pair.query].error), __float_as_int(bounds.error));
  atomicMax(reinterpret_cast<int*>(&task.worst[pair.query].moved), __float_as_int(bounds.moved));
  shared.bounds = bounds;
  shared.limit = NAN;
  shared.values = nullptr;
  if constexpr (kFirst) {
    const int64_t query = pair.query;
    task.bounds[query * kMostFirstSlots + pair.slot] = {bounds.error, bounds.moved};
    shared.values =
        task.values + query * task.value_stride + task.value_starts[query * (kMostFirstSlots + 1) + pair.slot];
  } else if (sure) {
    const double reach = task.reaches[pair.query];
    const double nearest = sqrt(square) * (1 - 0x1p-18) - facts.norm - bounds.moved;
    if (!(nearest > reach)) shared.limit = value_limit(task.lists.kind, bounds, reach);
  }
}

// Squared distances of the query's parts to the codewords of this thread's number.
__device__ inline void fill_tables(const ScanListsTask& task, const TablePair& shared, float* tables) {
  const CodeFormat& format = task.lists.codec.format;
  const UnitOrder order = unit_order(format);
  const auto number = static_cast<int>(threadIdx.x);
  const auto each = static_cast<int>(format.part_cols());
  const auto cols = static_cast<int>(format.cols);
  const auto* const halves = reinterpret_cast<const uint2*>(task.prepared.table);
  float sum = 0;
  int part = 0;
#pragma unroll 4
  for (int unit = 0; 4 * unit < cols; ++unit) {
    const int at = (step_of_unit(order, unit) * 256 + number) * 4 + quarter_of_unit(order, unit);
    const FourFloats word = floats_of(__ldg(halves + at));
    float differences[4];
    KITH_UNROLL
    for (int i = 0; i < 4; ++i) differences[i] = shared.query[4 * unit + i] - word.values[i];
    sum = fmaf(differences[0], differences[0], sum);
    sum = fmaf(differences[1], differences[1], sum);
    if (each == 2) {
      tables[part++ * 256 + number] = sum;
      sum = 0;
    }
    sum = fmaf(differences[2], differences[2], sum);
    sum = fmaf(differences[3], differences[3], sum);
    if (4 * (unit + 1) % each == 0) {
      tables[part++ * 256 + number] = sum;
      sum = 0;
    }
  }
}

__device__ inline float look_up(const float* tables, const uint8_t* code, int words) {
  float sum = 0;
#pragma unroll 4
  for (int i = 0; i < words; ++i) {
    const uint32_t word = __ldg(reinterpret_cast<const uint32_t*>(code) + i);
    const float* const of_word = tables + i * 4 * 256;
    sum += of_word[word & 255u];
    sum += of_word[256 + (word >> 8 & 255u)];
    sum += of_word[512 + (word >> 16 & 255u)];
    sum += of_word[768 + (word >> 24)];
  }
  return sum;
}

template <bool kFirst>
__device__ inline void scan_rows(const ScanListsTask& task, const ScanItem& item, uint32_t query,
                                 const TablePair& shared, const float* tables) {
  const auto parts = static_cast<int>(task.lists.codec.format.parts);
  const int64_t list_start = task.lists.offsets[item.list];
  for (auto i = static_cast<int>(threadIdx.x); i < item.rows; i += kThreads) {
    const uint32_t number = item.first_row + static_cast<uint32_t>(i);
    const int64_t position = list_start + (kFirst ? task.cut.first_row_at(number) : number);
    float value = look_up(tables, task.lists.codes + position * parts, parts / 4);
    if (task.kept != nullptr && !is_kept(task.kept, task.lists.rows[position])) value = NAN;
    if constexpr (kFirst) {
      shared.values[number] = value;
    } else if (value <= shared.limit) {
      if (task.candidates.has_enough_before(static_cast<uint32_t>(position))) continue;
      const uint32_t at = atomicAdd(&task.candidates.counts[query], 1u);
      if (at >= task.candidates.capacity) continue;
      const int64_t place = static_cast<int64_t>(query) * task.candidates.capacity + at;
      task.candidates.entries[place] = {static_cast<uint32_t>(position), value};
      task.candidates.lists[place] = item.list;
    }
  }
}

template <bool kFirst>
__global__ void __launch_bounds__(kThreads, kBlocks) scan_tables_kernel(const __grid_constant__ ScanListsTask task) {
  extern __shared__ __align__(16) float tables[];
  __shared__ TablePair shared;
  __shared__ ScanItem next;
  const auto thread = static_cast<int>(threadIdx.x);
  const auto cols = static_cast<int>(task.lists.codec.format.cols);
  ptx::wait_for_kernel_before();
  const uint32_t all_items = task.items[task.lists.lists];
  const float scale = operand_scale(*task.prepared.largest);
  for (;;) {
    __syncthreads();
    if (thread < 32) {
      const ScanItem taken = take_item<kFirst>(task, all_items);
      if (thread == 0) next = taken;
    }
    __syncthreads();
    const ScanItem item = next;
    if (item.queries == 0) return;
    for (int i = 0; i < item.queries; ++i) {
      const ProbePair pair = task.pairs[item.first_pair + static_cast<uint32_t>(i)];
      __syncthreads();  // the pair before is done
      if (thread < kMostCols) {
        float value = 0;
        if (thread < cols) {
          const float origin = task.lists.has_origin()
                                   ? task.lists.centres[static_cast<int64_t>(item.list) * cols + thread] * scale
                                   : 0.0f;
          value = fmaf(task.queries[static_cast<int64_t>(pair.query) * task.query_stride + thread], scale, -origin);
        }
        shared.query[thread] = value;
        float square = value * value;
        KITH_UNROLL
        for (int apart = 16; apart > 0; apart /= 2) square += __shfl_xor_sync(0xFFFFFFFFu, square, apart);
        if (thread % 32 == 0) shared.squares[thread / 32] = square;
      }
      __syncthreads();
      if (thread == kThreads - 1) bound_pair<kFirst>(task, item, pair, shared);
      fill_tables(task, shared, tables);
      __syncthreads();
      if (!kFirst && !(shared.limit == shared.limit)) continue;
      scan_rows<kFirst>(task, item, pair.query, shared, tables);
    }
  }
}

template <bool kFirst>
void launch(const ScanListsTask& task, cudaStream_t stream) {
  const auto kernel = scan_tables_kernel<kFirst>;
  allow_all_shared_memory(reinterpret_cast<const void*>(kernel));
  launch_chained({kBlocks * task.multiprocessors, kThreads, task.lists.codec.format.parts * 256 * 4, stream},
                 "launch of scan_tables_kernel", kernel, task);
}

}  // namespace

bool suits_tables(const CodeFormat& format) {
  return has_half_table(format) && format.parts % 4 == 0 && format.parts <= kMostParts;
}

void launch_scan_tables(const ScanListsTask& task, bool first, cudaStream_t stream) {
  if (first) return launch<true>(task, stream);
  launch<false>(task, stream);
}

}  // namespace kith
