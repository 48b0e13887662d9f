// Scans lists by lookup tables, for lists that few queries share: decoding would only serve one of them.
//
// A block takes a query with up to 32 of its lists. A warp computes the data of each list; then tables are made in
// shared memory, and lanes look up vectors' codes in them, two at a time. Tables are made once per query if a term is
// stored with each vector or list (scan_cut.hpp), else for each list. Codewords are the fp16 values of the other scans,
// queries are f32: bounds are those of a query that was hardly rounded. Bound by shared memory: about 3.5 cycles for
// looking up one part of 32 vectors.
#include "ivf/scan/scan_lists_task_cuda.hpp"

#include "core/ordered_key.hpp"
#include "cuda/launch.hpp"
#include "cuda/ptx.hpp"
#include "cuda/shared_memory.hpp"
#include "cuda/warp.hpp"
#include "ivf/scan/lookups_cuda.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int kThreads = kLookupThreads;
constexpr int kWarps = kThreads / 32;
constexpr int kBlocks = 5;  // of a multiprocessor
constexpr int64_t kMostParts = 64;
constexpr int kMostSlots = 32;     // of a query, at a time
constexpr int kGroupVectors = 64;  // two of each lane

struct TableSlot {
  LookupPair pair;
  float base;  // |x - c|^2
  uint32_t list;
  uint32_t first_row;
  uint32_t rows;  // to look at
  uint32_t every;  // the first pass takes one of this many tiles of the list
  int64_t start;  // of the list
};

struct TableQuery {
  float values[kLookupCols];  // the query, scaled, minus the middle or the list's centre
  TableSlot slots[kMostSlots];
};

// The vectors of a query's list that the pass looks at: scan_cut.hpp.
template <bool kFirst>
__device__ inline void cut_slot(const ScanListsTask& task, int64_t query, int64_t slot, uint32_t length,
                                TableSlot& found) {
  const uint32_t* const starts = task.value_starts + query * (kMostFirstSlots + 1);
  const bool first = slot < kMostFirstSlots && starts[slot] < starts[slot + 1];
  const uint32_t kept = task.cut.first_rows_of(length);
  found.first_row = 0;
  if constexpr (kFirst) {
    found.rows = first ? kept : 0;
    found.every = task.cut.every_of(length);
  } else {
    if (first && !task.cut.samples()) found.first_row = kept;
    found.rows = length - found.first_row;
  }
}

// By a warp; lanes after the first return what they know.
template <bool kFirst>
__device__ inline TableSlot look_at_slot(const ScanListsTask& task, int64_t query, int64_t slot, float scale,
                                         double far_norm) {
  const CodeFormat& format = task.lists.codec.format;
  const auto cols = static_cast<int>(format.cols);
  const auto lane = static_cast<int>(threadIdx.x) % 32;
  TableSlot found{};
  const uint64_t probe = task.probes[query * task.slots + slot];
  if (probe == kPadding || row_of(probe) >= task.lists.lists) return found;
  found.list = row_of(probe);
  found.start = task.lists.offsets[found.list];
  cut_slot<kFirst>(task, query, slot, static_cast<uint32_t>(task.lists.offsets[found.list + 1] - found.start), found);
  if (found.rows == 0) return found;
  const float* const values = task.queries + query * task.query_stride;
  const float* const centre = task.lists.centres + static_cast<int64_t>(found.list) * cols;
  float square = 0;
  for (int col = lane; col < cols; col += 32) {
    const float origin = task.lists.has_origin() ? centre[col] * scale : 0.0f;
    const float value = fmaf(values[col], scale, -origin);
    square = fmaf(value, value, square);
  }
  square = warp_sum(square);
  found.base = square;
  if (lane != 0) return found;
  const ListMaxima maxima = task.prepared.maxima[found.list];
  const PairBounds bounds = table_bounds(cols, format.parts, maxima, {square, far_norm});
  found.pair = publish_bounds<kFirst>(task, query, slot, bounds);
  if constexpr (!kFirst) {
    const double nearest = sqrt(static_cast<double>(square)) * (1 - 0x1p-18) - maxima.norm - bounds.moved;
    if (nearest > task.reaches[query] || !(found.pair.limit == found.pair.limit)) found.rows = 0;
  }
  return found;
}

// Loads the query's values: minus the middle, or minus one list's centre. Barriers are the caller's.
__device__ inline void load_values(const ScanListsTask& task, int64_t query, float scale, const float* less,
                                   float less_scale, float* out) {
  const auto col = static_cast<int>(threadIdx.x);
  if (col >= task.lists.codec.format.cols) return;
  const float origin = less == nullptr ? 0.0f : less[col] * less_scale;
  out[col] = fmaf(task.queries[query * task.query_stride + col], scale, -origin);
}

// By a warp.
__device__ inline double norm_of(const float* values, int64_t cols) {
  float square = 0;
  for (int64_t col = threadIdx.x % 32; col < cols; col += 32) square = fmaf(values[col], values[col], square);
  return sqrt(static_cast<double>(warp_sum(square))) * (1 + 0x1p-18);
}

// A group of a list's vectors; by a warp.
template <bool kFirst, ScanTerm kTerm>
__device__ inline void scan_group(const ScanListsTask& task, int64_t query, const TableSlot& slot, uint32_t group,
                                  const float* tables) {
  const int64_t parts = task.lists.codec.format.parts;
  float values[2];
  uint32_t numbers[2];
  int64_t positions[2];
  KITH_UNROLL
  for (int i = 0; i < 2; ++i) {
    const uint32_t at = group * kGroupVectors + 32 * static_cast<uint32_t>(i) + threadIdx.x % 32;
    numbers[i] = slot.first_row + at;
    const uint32_t real = slot.first_row + min(at, slot.rows - 1);  // there is one
    positions[i] = slot.start + (kFirst ? sampled_row(real, slot.every) : real);
    values[i] = kTerm == ScanTerm::none ? 0.0f : slot.base;
    if (kTerm == ScanTerm::of_vector) values[i] += __ldg(task.terms.vectors + positions[i]);
  }
  KITH_UNROLL
  for (int i = 0; i < 2; ++i) values[i] += look_up(tables, task.lists.codes + positions[i] * parts, parts);
  KITH_UNROLL
  for (int i = 0; i < 2; ++i) {
    if (numbers[i] - slot.first_row >= slot.rows) continue;
    give_value<kFirst>(task, slot.pair, query, slot.list, numbers[i], positions[i], values[i]);
  }
}

template <bool kFirst, ScanTerm kTerm>
__global__ void __launch_bounds__(kThreads, kBlocks)
    scan_tables_kernel(const __grid_constant__ ScanListsTask task, int all_slots, int slots_each) {
  extern __shared__ __align__(16) float tables[];
  __shared__ TableQuery shared;
  __shared__ uint32_t next;
  const CodeFormat& format = task.lists.codec.format;
  const auto thread = static_cast<int>(threadIdx.x);
  const int warp = thread / 32;
  const auto entries = static_cast<int>(format.parts) * 256;
  const auto chunks = static_cast<uint32_t>((all_slots + slots_each - 1) / slots_each);
  const auto product = [](float sum, float value, float word) { return fmaf(-2.0f * value, word, sum); };
  const auto square = [](float sum, float value, float word) {
    const float difference = value - word;
    return fmaf(difference, difference, sum);
  };
  ptx::wait_for_kernel_before();
  const float scale = operand_scale(*task.prepared.largest);
  for (;;) {
    __syncthreads();
    if (thread == 0) next = atomicAdd(task.counter, 1u);
    __syncthreads();
    const uint32_t taken = next;
    if (taken >= static_cast<uint32_t>(task.query_count) * chunks) return;
    const int64_t query = taken / chunks;
    const int first_slot = static_cast<int>(taken % chunks) * slots_each;
    const int slots = min(slots_each, all_slots - first_slot);
    if (kTerm != ScanTerm::none) load_values(task, query, scale, task.terms.middle, 1.0f, shared.values);
    __syncthreads();
    const double far_norm = kTerm == ScanTerm::none ? 0.0 : norm_of(shared.values, format.cols);
    bool any = false;
    for (int i = warp; i < slots; i += kWarps) {
      const TableSlot found = look_at_slot<kFirst>(task, query, first_slot + i, scale, far_norm);
      if (thread % 32 != 0) continue;
      shared.slots[i] = found;
      any |= found.rows > 0;
    }
    if (__syncthreads_or(any) == 0) continue;
    // A query's tables: those of lists with their own are after them.
    float* const own = kTerm == ScanTerm::of_list ? tables + entries : tables;
    if (kTerm != ScanTerm::none) {
      fill_lookup_tables(format, task.prepared.table, shared.values, own, product);
      __syncthreads();
    }
    auto turn = static_cast<uint32_t>(warp);  // groups of vectors go round the warps
    for (int i = 0; i < slots; ++i) {
      const TableSlot& slot = shared.slots[i];
      if (slot.rows == 0) continue;
      if (kTerm != ScanTerm::of_vector) {
        __syncthreads();  // the list before is done
        if (kTerm == ScanTerm::of_list) {
          const float* const of_list = task.terms.tables + static_cast<int64_t>(slot.list) * entries;
          for (int at = thread; at < entries; at += kThreads) tables[at] = own[at] + __ldg(of_list + at);
        } else {
          const float* const centre =
              task.lists.has_origin() ? task.lists.centres + static_cast<int64_t>(slot.list) * format.cols : nullptr;
          load_values(task, query, scale, centre, scale, shared.values);
          __syncthreads();
          fill_lookup_tables(format, task.prepared.table, shared.values, tables, square);
        }
        __syncthreads();
      }
      const uint32_t groups = (slot.rows + kGroupVectors - 1) / kGroupVectors;
      for (; turn < groups; turn += kWarps) scan_group<kFirst, kTerm>(task, query, slot, turn, tables);
      turn -= groups;
    }
  }
}

template <bool kFirst, ScanTerm kTerm>
void launch_with(const ScanListsTask& task, cudaStream_t stream) {
  const auto kernel = scan_tables_kernel<kFirst, kTerm>;
  const int64_t slots = kFirst ? std::min<int64_t>(task.slots, kMostFirstSlots) : task.slots;
  // A query's lists together, but of few queries so few that all blocks have some.
  const int64_t tasks = 4 * kBlocks * task.multiprocessors;
  const int64_t each = std::clamp<int64_t>(task.query_count * slots / tasks, 1, kMostSlots);
  const int64_t tables = kTerm == ScanTerm::of_list ? 2 : 1;
  allow_all_shared_memory(kernel);
  const Grid grid = Grid::of(kBlocks * task.multiprocessors, kThreads)
                        .with_shared(tables * task.lists.codec.format.parts * 256 * 4)
                        .chained();
  launch(kernel, grid, stream, task, static_cast<int>(slots), static_cast<int>(each));
}

template <bool kFirst>
void launch_pass(const ScanListsTask& task, cudaStream_t stream) {
  switch (task.terms.term) {
    case ScanTerm::of_vector: return launch_with<kFirst, ScanTerm::of_vector>(task, stream);
    case ScanTerm::of_list: return launch_with<kFirst, ScanTerm::of_list>(task, stream);
    default: return launch_with<kFirst, ScanTerm::none>(task, stream);
  }
}

}  // namespace

bool suits_tables(const CodeFormat& format) {
  return has_half_table(format) && !has_triple_words(format) && format.parts % 4 == 0 && format.parts <= kMostParts;
}

void launch_scan_tables(const ScanListsTask& task, bool first, cudaStream_t stream) {
  if (first) return launch_pass<true>(task, stream);
  launch_pass<false>(task, stream);
}

}  // namespace kith
