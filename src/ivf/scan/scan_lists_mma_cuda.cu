// The scan of lists with products of single warps: for every GPU from compute capability 8.0 on.
//
// Blocks stay on their multiprocessors and take item after item, whichever is next. A warp decodes 32 vectors at a time
// to halves in registers and multiplies them with eight queries at a time.
#include "ivf/scan/scan_lists_task_cuda.hpp"

#include <kith/error.hpp>

#include "core/divide.hpp"
#include "cuda/launch.hpp"
#include "cuda/ptx.hpp"
#include "cuda/shared_memory.hpp"
#include "cuda/vector_access.hpp"
#include "ivf/scan/scan_decoders_cuda.hpp"
#include "ivf/scan/scan_queries_cuda.hpp"
#include "rows/kept_rows_cuda.hpp"

#include <algorithm>
#include <string>

namespace kith {
namespace {

constexpr int kThreads = 192;  // so few that each may have 168 registers
constexpr int kWarps = kThreads / 32;
constexpr int kBlocks = 2;     // of a multiprocessor
constexpr int kTileRows = 32;  // of a warp at a time: two of the matrix units' 16
constexpr int kWideTiles = 4;  // of queries: their sums stay in registers
constexpr int64_t kSharedBytes = int64_t{227} << 10;

struct BlockLayout : SharedLayout {
  Slot<std::byte> table, operands;
  Slot<float> origin;
  Slot<LoadedQuery> loaded;
  Slot<ScanQuery> queries;
  Slot<float> limits;
  Slot<ScanItem> item;

  KITH_HOST_DEVICE BlockLayout(int64_t table_bytes, int64_t steps, int64_t group_queries) {
    table = take<std::byte>((table_bytes + 127) / 128 * 128);
    operands = take<std::byte>(steps * group_queries * 32);
    origin = take<float>(steps * 16);
    loaded = take<LoadedQuery>(group_queries);
    queries = take<ScanQuery>(group_queries);
    limits = take<float>(group_queries);
    item = take<ScanItem>(2);
    bytes += 16;
  }
};

// The queries' halves: 16 of a query and step after the other.
class WarpOperands {
 public:
  __device__ WarpOperands(std::byte* data, int group_queries, int steps, UnitOrder order)
      : data_(data), group_queries_(group_queries), steps_(steps), order_(order) {}

  __device__ int steps() const { return steps_; }
  __device__ void store(int unit, int place, uint2 halves) const {
    const int step = step_of_unit(order_, unit);
    store_vector(data_ + (static_cast<int64_t>(step) * group_queries_ + place) * 32 + quarter_of_unit(order_, unit) * 8,
                 halves);
  }
  __device__ void fence() const {}
  __device__ uint2 load(int step, int query_tile) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    return load_vector<uint2>(data_ + (step * group_queries_ + query_tile * kTileQueries + lane / 4) * 32 +
                              lane % 4 * 8);
  }

 private:
  std::byte* data_;
  int group_queries_;
  int steps_;
  UnitOrder order_;
};

// Rare, and so not inlined: the code of the scan must fit its cache, and its registers hold other things.
__device__ __noinline__ void add_candidate(const ScanListsTask& task, const ScanQuery* query, uint32_t position,
                                           uint32_t list, float value) {
  const uint32_t at = atomicAdd(&task.candidates.counts[query->query], 1u);
  if (at >= task.candidates.capacity) return;
  const int64_t place = static_cast<int64_t>(query->query) * task.candidates.capacity + at;
  task.candidates.entries[place] = {position, query->bounds.estimate(value)};
  task.candidates.lists[place] = list;
}

// What a thread does with its sums: of 32 vectors and eight queries it has vectors lane / 4 + 8 i and queries
// 2 (lane % 4) + j.
template <bool kFirst>
class TileEnd {
 public:
  __device__ TileEnd(const ScanListsTask& task, const ScanItem& item, int queries, const ScanMemory& memory)
      : task_(task), memory_(memory), item_(item), queries_(queries), cosine_(task.lists.has_factors()) {}

  // The terms of the tile's vectors. What is past the last, or left out by a filter, has NaN, which is below nothing.
  __device__ void begin(int64_t first_position, uint32_t first_row) {
    first_row_ = first_row + threadIdx.x % 32 / 4;
    first_position_ = first_position + static_cast<int>(threadIdx.x) % 32 / 4;
    KITH_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int64_t position = first_position_ + 8 * i;
      terms_[i] = NAN;
      if (!inside(i)) continue;
      if (task_.kept != nullptr && !is_kept(task_.kept, task_.lists.rows[position])) continue;
      terms_[i] = task_.prepared.terms == nullptr ? 0.0f : task_.prepared.terms[position];
    }
    __syncwarp();
  }

  // What the sums of a tile start from: the terms, which spares their addition, except cosine's, which are factors.
  __device__ void start(float (&sums)[2][4]) const {
    KITH_UNROLL
    for (int i = 0; i < 8; ++i) sums[i / 4][i % 4] = cosine_ ? 0.0f : terms_[i / 4 * 2 + i % 4 / 2];
  }

  __device__ void tile(const float (&sums)[2][4], int query_tile) const {
    const int first = query_tile * kTileQueries + 2 * (static_cast<int>(threadIdx.x) % 4);
    float values[4][2];
    if (cosine_) {
      KITH_UNROLL
      for (int j = 0; j < 2; ++j) {
        const PairBounds& bounds = memory_.queries[first + j].bounds;
        KITH_UNROLL
        for (int i = 0; i < 4; ++i) {
          values[i][j] = terms_[i] * fmaf(sums[i / 2][i % 2 * 2 + j], bounds.gain, bounds.offset);
        }
      }
    } else {
      KITH_UNROLL
      for (int i = 0; i < 4; ++i) {
        KITH_UNROLL
        for (int j = 0; j < 2; ++j) values[i][j] = sums[i / 2][i % 2 * 2 + j];
      }
    }
    if constexpr (kFirst) {
      KITH_UNROLL
      for (int j = 0; j < 2; ++j) {
        if (first + j >= queries_) continue;
        const ScanQuery& query = memory_.queries[first + j];
        const PairBounds& bounds = query.bounds;
        float* const out =
            task_.values + static_cast<int64_t>(query.query) * task_.value_stride + query.value_start + first_row_;
        KITH_UNROLL
        for (int i = 0; i < 4; ++i) {
          if (inside(i)) out[8 * i] = bounds.estimate(values[i][j]);
        }
      }
    } else {
      const float2 limits = load_vector<float2>(memory_.limits + first);
      bool any = false;
      KITH_UNROLL
      for (int i = 0; i < 4; ++i) any = any || values[i][0] <= limits.x || values[i][1] <= limits.y;
      if (any) {
        KITH_UNROLL
        for (int i = 0; i < 4; ++i) {
          const auto position = static_cast<uint32_t>(first_position_ + 8 * i);
          const ScanQuery* const queries = memory_.queries + first;
          const bool wanted = inside(i) && !task_.candidates.has_enough_before(position);
          if (wanted && values[i][0] <= limits.x) add_candidate(task_, queries, position, item_.list, values[i][0]);
          if (wanted && values[i][1] <= limits.y) add_candidate(task_, queries + 1, position, item_.list, values[i][1]);
        }
      }
    }
    __syncwarp();  // matrix units want all lanes together
  }

 private:
  __device__ bool inside(int i) const {
    return first_row_ + 8 * static_cast<uint32_t>(i) < item_.first_row + static_cast<uint32_t>(item_.rows);
  }

  const ScanListsTask& task_;
  const ScanMemory& memory_;
  const ScanItem& item_;
  int queries_;
  bool cosine_;
  uint32_t first_row_ = 0;
  int64_t first_position_ = 0;
  float terms_[4];
};

// All columns of 32 vectors in registers, any number of queries.
template <int kTiles, bool kFirst>
__device__ inline void multiply_narrow(const uint32_t (&vectors)[kNarrowSteps][2][4], const WarpOperands& operands,
                                       int query_tile, const TileEnd<kFirst>& end) {
  float sums[kTiles][2][4];
  KITH_UNROLL
  for (int tile = 0; tile < kTiles; ++tile) end.start(sums[tile]);
  KITH_UNROLL
  for (int step = 0; step < kNarrowSteps; ++step) {
    KITH_UNROLL
    for (int tile = 0; tile < kTiles; ++tile) {
      const uint2 loaded = operands.load(step, query_tile + tile);
      const uint32_t b[2] = {loaded.x, loaded.y};
      ptx::multiply_add(sums[tile][0], vectors[step][0], b);
      ptx::multiply_add(sums[tile][1], vectors[step][1], b);
    }
  }
  KITH_UNROLL
  for (int tile = 0; tile < kTiles; ++tile) end.tile(sums[tile], query_tile + tile);
}

// Where a tile begins among the list's vectors.
template <bool kFirst>
__device__ inline uint32_t tile_row(const ScanItem& item, int tile) {
  const uint32_t number = item.first_row + static_cast<uint32_t>(tile * kTileRows);
  return kFirst ? item.row_at(number) : number;
}

// Codes past the last are the last one's.
template <typename Decoder>
__device__ HeldCodes<Decoder, 4> hold_tile(const Decoder& decoder, const uint8_t* first, int64_t code_bytes, int last) {
  const int row = static_cast<int>(threadIdx.x) % 32 / 4;
  HeldCodes<Decoder, 4> held;
  KITH_UNROLL
  for (int i = 0; i < 4; ++i) held.codes[i] = decoder.hold(first + min(row + 8 * i, last) * code_bytes);
  return held;
}

template <typename Decoder, bool kFirst>
__device__ void scan_narrow(const ScanListsTask& task, const ScanItem& item, int queries, int64_t code_bytes,
                            const Decoder& decoder, const WarpOperands& operands, const ScanMemory& memory) {
  using Held = HeldCodes<Decoder, 4>;
  const int query_tiles = (queries + kTileQueries - 1) / kTileQueries;
  const int64_t list_start = task.lists.offsets[item.list];
  const uint8_t* const codes = task.lists.codes + list_start * code_bytes;
  const auto hold = [&](int tile) {
    tile = min(tile, (item.rows - 1) / kTileRows);
    return hold_tile(decoder, codes + tile_row<kFirst>(item, tile) * code_bytes, code_bytes,
                     item.rows - 1 - tile * kTileRows);
  };
  TileEnd<kFirst> end(task, item, queries, memory);
  const bool full = decoder.full(kNarrowSteps);
  int tile = static_cast<int>(threadIdx.x) / 32;
  Held held = hold(tile);
  for (; tile * kTileRows < item.rows; tile += kWarps) {
    uint32_t vectors[kNarrowSteps][2][4];
    if (full) {
      held.template decode_all<true>(decoder, vectors);
    } else {
      held.template decode_all<false>(decoder, vectors);
    }
    held = hold(tile + kWarps);
    end.begin(list_start + tile_row<kFirst>(item, tile), item.first_row + static_cast<uint32_t>(tile * kTileRows));
    int query_tile = 0;
    for (; query_tile + 1 < query_tiles; query_tile += 2) {
      multiply_narrow<2, kFirst>(vectors, operands, query_tile, end);
    }
    if (query_tile < query_tiles) {
      multiply_narrow<1, kFirst>(vectors, operands, query_tile, end);
    }
  }
}

// Any number of columns, up to 32 queries whose sums are in registers.
template <typename Decoder, bool kFirst>
__device__ void scan_wide(const ScanListsTask& task, const ScanItem& item, int queries, int64_t code_bytes,
                          const Decoder& decoder, const WarpOperands& operands, const ScanMemory& memory) {
  const int query_tiles = (queries + kTileQueries - 1) / kTileQueries;
  const int64_t list_start = task.lists.offsets[item.list];
  const uint8_t* const codes = task.lists.codes + list_start * code_bytes;
  TileEnd<kFirst> end(task, item, queries, memory);
  for (int tile = static_cast<int>(threadIdx.x) / 32; tile * kTileRows < item.rows; tile += kWarps) {
    const uint32_t row = tile_row<kFirst>(item, tile);
    const HeldCodes<Decoder, 4> held =
        hold_tile(decoder, codes + row * code_bytes, code_bytes, item.rows - 1 - tile * kTileRows);
    end.begin(list_start + row, item.first_row + static_cast<uint32_t>(tile * kTileRows));
    float sums[kWideTiles][2][4];
    KITH_UNROLL
    for (int query_tile = 0; query_tile < kWideTiles; ++query_tile) end.start(sums[query_tile]);
    for (int step = 0; step < operands.steps(); ++step) {
      uint32_t vectors[2][4];
      held.template decode<false>(decoder, step, vectors);
      KITH_UNROLL
      for (int query_tile = 0; query_tile < kWideTiles; ++query_tile) {
        if (query_tile >= query_tiles) break;
        const uint2 loaded = operands.load(step, query_tile);
        const uint32_t b[2] = {loaded.x, loaded.y};
        ptx::multiply_add(sums[query_tile][0], vectors[0], b);
        ptx::multiply_add(sums[query_tile][1], vectors[1], b);
      }
    }
    KITH_UNROLL
    for (int query_tile = 0; query_tile < kWideTiles; ++query_tile) {
      if (query_tile < query_tiles) end.tile(sums[query_tile], query_tile);
    }
  }
}

template <typename Decoder, bool kFirst, bool kWide>
__global__ void __launch_bounds__(kThreads, kBlocks)
    scan_lists_kernel(const __grid_constant__ ScanListsTask task, int64_t code_bytes, int steps, int64_t table_bytes) {
  extern __shared__ __align__(128) std::byte shared[];
  __shared__ int listed;
  const BlockLayout layout(table_bytes, steps, task.cut.group_queries);
  const ScanMemory memory{
      layout.table.in(shared),   layout.operands.in(shared), layout.origin.in(shared), layout.loaded.in(shared),
      layout.queries.in(shared), layout.limits.in(shared),   layout.item.in(shared),   &listed};
  const WarpOperands operands(memory.operands, task.cut.group_queries, steps,
                              kWide ? UnitOrder::side_by_side : unit_order(task.lists.codec.format));
  ptx::wait_for_kernel_before();
  const uint32_t all_items = task.items[task.lists.lists];
  const float scale = operand_scale(*task.prepared.largest);
  const Decoder decoder(DecoderInput{task.lists, task.prepared, scale, memory.origin, memory.table});
  int turn = 0;            // of the two items: the one at work, and the next
  const auto take = [&] {  // by a warp
    const ScanItem item = take_item<kFirst>(task, all_items);
    if (threadIdx.x % 32 == 0) memory.item[turn] = item;
    __syncwarp();
  };
  if (threadIdx.x < 32) take();
  if (threadIdx.x == 0) listed = 0;
  __syncthreads();
  if (Decoder::kHasTable && memory.item->queries > 0) {
    const auto* const from = vectors<uint4>(task.prepared.table);
    for (int64_t i = threadIdx.x; i < table_bytes / 16; i += kThreads) {
      vectors<uint4>(memory.table)[i] = from[i];
    }
  }
  for (;;) {
    __syncthreads();  // all have read what this item replaces
    const ScanItem item = memory.item[turn];
    if (item.queries == 0) return;
    turn ^= 1;
    const int queries = load_queries<kFirst>(task, item, scale, operands, memory, take);
    if constexpr (kWide) {
      scan_wide<Decoder, kFirst>(task, item, queries, code_bytes, decoder, operands, memory);
    } else {
      scan_narrow<Decoder, kFirst>(task, item, queries, code_bytes, decoder, operands, memory);
    }
  }
}

int steps_of(const CodeFormat& format) {
  return is_wide(format) ? static_cast<int>(divide_up(format.cols, 16)) : kNarrowSteps;
}

template <typename Decoder, bool kFirst, bool kWide>
void launch_with(const ScanListsTask& task, cudaStream_t stream) {
  const CodeFormat& format = task.lists.codec.format;
  if (task.cut.group_queries != scan_group_queries(format)) {
    throw InvalidArgument("groups of " + std::to_string(task.cut.group_queries) +
                          " queries are not what a block holds");
  }
  const int steps = steps_of(format);
  const int64_t table_bytes = Decoder::kHasTable ? table_steps(format) * kTableStepBytes : 0;
  const BlockLayout layout(table_bytes, steps, task.cut.group_queries);
  const auto kernel = scan_lists_kernel<Decoder, kFirst, kWide>;
  allow_all_shared_memory(kernel);
  launch(kernel, Grid::of(kBlocks * task.multiprocessors, kThreads).with_shared(layout.bytes).chained(), stream, task,
         task.scanned_bytes(), steps, table_bytes);
}

template <bool kFirst>
void launch_pass(const ScanListsTask& task, cudaStream_t stream) {
  const CodeFormat& format = task.lists.codec.format;
  const bool has_halves = task.prepared.halves != nullptr;
  if (is_wide(format) && has_halves) return launch_with<PreparedDecoder, kFirst, true>(task, stream);
  if (is_wide(format)) return launch_with<AnyDecoder, kFirst, true>(task, stream);
  visit_scan_decoder(format, has_halves,
                     [&](auto tag) { launch_with<typename decltype(tag)::type, kFirst, false>(task, stream); });
}

}  // namespace

int scan_group_queries(const CodeFormat& format) {
  if (!is_wide(format)) return kNarrowQueries;
  for (int queries = kWideTiles * kTileQueries; queries > 0; queries /= 2) {
    const int64_t bytes = BlockLayout(0, steps_of(format), queries).bytes;
    if (queries % kTileQueries == 0 && bytes <= kSharedBytes - 1024) return queries;
  }
  return 0;
}

void launch_scan_mma(const ScanListsTask& task, bool first, cudaStream_t stream) {
  if (first) return launch_pass<true>(task, stream);
  launch_pass<false>(task, stream);
}

}  // namespace kith
