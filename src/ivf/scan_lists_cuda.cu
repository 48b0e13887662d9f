// Blocks stay on their multiprocessors and take item after item, whichever is next.
#include "ivf/scan_lists_cuda.hpp"

#include <kith/error.hpp>

#include "core/divide.hpp"
#include "cuda/chained_launch.hpp"
#include "cuda/ptx.hpp"
#include "cuda/shared_memory.hpp"
#include "ivf/prepare_lists_cuda.hpp"
#include "ivf/scan_decoders_cuda.hpp"
#include "kernels/distance/kept_rows_cuda.hpp"

#include <algorithm>
#include <string>

namespace kith {
namespace {

constexpr int kThreads = 192;  // so few that each may have 168 registers
constexpr int kWarps = kThreads / 32;
constexpr int kBlocks = 2;       // of a multiprocessor
constexpr int kTileRows = 32;    // of a warp at a time: two of the matrix units' 16
constexpr int kTileQueries = 8;  // of the matrix units
constexpr int kNarrowSteps = 8;  // of 16 columns: a tile of vectors stays in registers
constexpr int kWideTiles = 4;    // of queries: their sums stay in registers
constexpr int kNarrowQueries = 128;
constexpr int64_t kSharedBytes = int64_t{227} << 10;
constexpr unsigned kWarp = 0xFFFFFFFFu;

// One item, as all threads of the block see it.
struct Item {
  uint32_t list;
  uint32_t first_pair;
  int queries;    // 0: no more items
  int first_row;  // in the list
  int rows;
};

// What the block knows of a query of its item.
struct ScanQuery {
  PairBounds bounds;
  uint32_t query;
  uint32_t slot;
  uint32_t value_start;
};

struct BlockMemory {
  std::byte* table;
  std::byte* operands;  // steps x group_queries x 16 halves
  float* origin;        // the centre, scaled; zeros where there is none
  PairFacts* facts;
  ScanQuery* queries;
  float* limits;
  Item* item;
};

struct BlockLayout {
  int64_t table, operands, origin, facts, queries, limits, item, bytes;

  KITH_HOST_DEVICE BlockLayout(int64_t table_bytes, int64_t steps, int64_t group_queries) {
    table = 0;
    operands = (table_bytes + 127) / 128 * 128;
    origin = operands + steps * group_queries * 32;
    facts = origin + steps * 64;
    queries = facts + group_queries * static_cast<int64_t>(sizeof(PairFacts));
    limits = queries + group_queries * static_cast<int64_t>(sizeof(ScanQuery));
    item = limits + group_queries * 4;
    bytes = item + static_cast<int64_t>(sizeof(Item)) + 16;
  }
};

__device__ double warp_sum(double value) {
  KITH_UNROLL
  for (int apart = 16; apart > 0; apart /= 2) value += __shfl_xor_sync(kWarp, value, apart);
  return value;
}

// Of floats that are not negative.
__device__ void raise(float* to, float value) {
  if (value > *to) atomicMax(reinterpret_cast<int*>(to), __float_as_int(value));
}

// The list that has the item: the last whose items begin no later. All lanes of a warp.
__device__ int64_t find_list(const uint32_t* items, int64_t lists, uint32_t index) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  int64_t low = 0;
  int64_t high = lists;
  while (high - low > 1) {
    const int64_t step = (high - low + 31) / 32;
    const int64_t probe = low + lane * step;
    const unsigned before = __ballot_sync(kWarp, probe < high && items[probe] <= index);
    low += (31 - __clz(static_cast<int>(before))) * step;
    high = low + step < high ? low + step : high;
  }
  return low;
}

template <bool kFirst>
__device__ Item make_item(const ScanListsTask& task, int64_t list, int index) {
  const int64_t length = task.lists.offsets[list + 1] - task.lists.offsets[list];
  const int64_t kept = length < task.cut.kept_rows ? length : task.cut.kept_rows;
  const int run = task.cut.run_rows;
  const int group = task.cut.group_queries;
  const auto cut_into = [](int64_t count, int each) { return static_cast<int>((count + each - 1) / each); };
  const auto first = static_cast<int>(task.counts[2 * list]);
  const auto later = static_cast<int>(task.counts[2 * list + 1]);
  int pairs = kFirst ? first : later;
  uint32_t pair = task.starts[2 * list + (kFirst ? 0 : 1)];
  int64_t begin = 0;
  int64_t end = kept;
  int runs = cut_into(kept, run);
  if (!kFirst && index >= runs * cut_into(later, group)) {  // all queries with what no first pass has seen
    index -= runs * cut_into(later, group);
    pairs = first + later;
    pair = task.starts[2 * list];
    begin = kept;
    end = length;
    runs = cut_into(length - kept, run);
  }
  const int groups = cut_into(pairs, group);
  const int each = (cut_into(pairs, groups) + kTileQueries - 1) / kTileQueries * kTileQueries;
  const int first_query = index / runs * each;
  begin += static_cast<int64_t>(index % runs) * run;
  Item item;
  item.list = static_cast<uint32_t>(list);
  item.first_pair = pair + static_cast<uint32_t>(first_query);
  item.queries = pairs - first_query < each ? pairs - first_query : each;
  item.first_row = static_cast<int>(begin);
  item.rows = static_cast<int>(end - begin < run ? end - begin : run);
  return item;
}

// The centre of the item's list. Zeros stay where there is none.
__device__ void load_origin(const ScanListsTask& task, const Item& item, float scale, int steps, float* origin) {
  const int cols = static_cast<int>(task.lists.codec.format.cols);
  const bool there = task.lists.has_origin();
  for (int col = static_cast<int>(threadIdx.x); col < steps * 16; col += kThreads) {
    origin[col] = there && col < cols ? task.lists.centres[static_cast<int64_t>(item.list) * cols + col] * scale : 0.0f;
  }
}

// Halves of one query, negated, and what is known of them; by a warp.
__device__ void load_query(const ScanListsTask& task, uint32_t query, int place, float scale, int steps,
                           const BlockMemory& memory) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int cols = static_cast<int>(task.lists.codec.format.cols);
  const bool differences = has_differences(task.lists.kind);
  const float* const values = task.queries + static_cast<int64_t>(query) * task.query_stride;
  const bool aligned =
      cols % 4 == 0 && task.query_stride % 4 == 0 && reinterpret_cast<uintptr_t>(task.queries) % 16 == 0;
  const auto load = [&](int first) {
    float4 four = {0, 0, 0, 0};
    if (aligned) {
      if (first < cols) four = *reinterpret_cast<const float4*>(values + first);
      return four;
    }
    if (first < cols) four.x = values[first];
    if (first + 1 < cols) four.y = values[first + 1];
    if (first + 2 < cols) four.z = values[first + 2];
    if (first + 3 < cols) four.w = values[first + 3];
    return four;
  };
  float own_scale = scale;
  if (!differences) {
    float largest = 0;
    for (int first = 4 * lane; first < cols; first += 128) {
      const float4 x = load(first);
      largest = fmaxf(fmaxf(fmaxf(largest, fabsf(x.x)), fmaxf(fabsf(x.y), fabsf(x.z))), fabsf(x.w));
    }
    largest = __uint_as_float(__reduce_max_sync(kWarp, __float_as_uint(largest)));
    own_scale = operand_scale(largest);
  }
  double squares = 0;
  double residuals = 0;
  double offset = 0;
  double norm = 0;
  for (int first = 4 * lane; first < steps * 16; first += 128) {
    const float4 loaded = load(first);
    const float x[4] = {loaded.x, loaded.y, loaded.z, loaded.w};
    double wanted[4];
    FourFloats rounded;
    KITH_UNROLL
    for (int i = 0; i < 4; ++i) {
      const double origin = memory.origin[first + i];
      const double scaled = static_cast<double>(x[i]) * own_scale;
      wanted[i] = differences ? scaled - origin : scaled;
      offset += scaled * origin;
      norm += scaled * scaled;
      rounded.values[i] = -static_cast<float>(wanted[i]);
    }
    const uint2 halves = halves_of(rounded, 1.0f, {0, 0, 0, 0});
    const FourFloats have = floats_of(halves);
    KITH_UNROLL
    for (int i = 0; i < 4; ++i) {
      const double moved = wanted[i] + have.values[i];
      squares += static_cast<double>(have.values[i]) * have.values[i];
      residuals += moved * moved;
    }
    const int step = first / 16;
    *reinterpret_cast<uint2*>(memory.operands + (static_cast<int64_t>(step) * task.cut.group_queries + place) * 32 +
                              first % 16 * 2) = halves;
  }
  squares = warp_sum(squares);
  residuals = warp_sum(residuals);
  PairFacts facts{squares, sqrt(residuals) * (1 + 0x1p-20) + 0x1p-100, 0, 0};
  if (!differences) {
    facts.offset = warp_sum(offset);
    norm = warp_sum(norm);
    facts.inverse_norm = norm > 0 ? 1 / sqrt(norm) : norm;
  }
  if (lane == 0) memory.facts[place] = facts;
}

// The queries of the item: halves in shared memory, bounds, limits.
template <bool kFirst>
__device__ void load_queries(const ScanListsTask& task, const Item& item, float scale, int steps,
                             const BlockMemory& memory) {
  for (int place = static_cast<int>(threadIdx.x) / 32; place < item.queries; place += kWarps) {
    load_query(task, task.pairs[item.first_pair + static_cast<uint32_t>(place)].query, place, scale, steps, memory);
  }
  __syncthreads();
  const auto place = static_cast<int>(threadIdx.x);
  if (place >= task.cut.group_queries) return;
  memory.limits[place] = NAN;  // nothing is below it
  if (place >= item.queries) return;
  const ProbePair pair = task.pairs[item.first_pair + static_cast<uint32_t>(place)];
  ScanQuery query;
  query.query = pair.query;
  query.slot = pair.slot;
  query.bounds = pair_bounds(task.lists.kind, steps * 16, task.prepared.facts[item.list], memory.facts[place]);
  const bool sure = query.bounds.sure();
  if (!sure) task.unsure[pair.query] = 1;
  raise(&task.worst[pair.query].error, query.bounds.error);
  raise(&task.worst[pair.query].moved, query.bounds.moved);
  if constexpr (kFirst) {
    query.value_start = task.value_starts[static_cast<int64_t>(pair.query) * (kMostFirstSlots + 1) + pair.slot];
    task.bounds[static_cast<int64_t>(pair.query) * kMostFirstSlots + pair.slot] = {query.bounds.error,
                                                                                   query.bounds.moved};
  } else if (sure) {
    memory.limits[place] = value_limit(task.lists.kind, query.bounds, task.reaches[pair.query]);
  }
  memory.queries[place] = query;
}

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
  __device__ TileEnd(const ScanListsTask& task, const Item& item, const BlockMemory& memory)
      : task_(task), memory_(memory), item_(item), cosine_(task.lists.kind == KeyKind::cosine) {}

  // The terms of the tile's vectors. What is past the last, or left out by a filter, has NaN, which is below nothing.
  __device__ void begin(int64_t first_position, int first_row) {
    first_row_ = first_row + static_cast<int>(threadIdx.x) % 32 / 4;
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
        if (first + j >= item_.queries) continue;
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
      const float2 limits = *reinterpret_cast<const float2*>(memory_.limits + first);
      bool any = false;
      KITH_UNROLL
      for (int i = 0; i < 4; ++i) any = any || values[i][0] <= limits.x || values[i][1] <= limits.y;
      if (any) {
        KITH_UNROLL
        for (int i = 0; i < 4; ++i) {
          const auto position = static_cast<uint32_t>(first_position_ + 8 * i);
          const ScanQuery* const queries = memory_.queries + first;
          if (values[i][0] <= limits.x) add_candidate(task_, queries, position, item_.list, values[i][0]);
          if (values[i][1] <= limits.y) add_candidate(task_, queries + 1, position, item_.list, values[i][1]);
        }
      }
    }
    __syncwarp();  // matrix units want all lanes together
  }

 private:
  __device__ bool inside(int i) const { return first_row_ + 8 * i < item_.first_row + item_.rows; }

  const ScanListsTask& task_;
  const BlockMemory& memory_;
  const Item& item_;
  bool cosine_;
  int first_row_ = 0;
  int64_t first_position_ = 0;
  float terms_[4];
};

__device__ inline uint2 load_operand(const std::byte* operands, int group_queries, int step, int query_tile) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  return *reinterpret_cast<const uint2*>(operands + (step * group_queries + query_tile * kTileQueries + lane / 4) * 32 +
                                         lane % 4 * 8);
}

// All columns of 32 vectors in registers, any number of queries.
template <int kTiles, bool kFirst>
__device__ inline void multiply_narrow(const uint32_t (&vectors)[2][kNarrowSteps][4], const std::byte* operands,
                                       int query_tile, const TileEnd<kFirst>& end) {
  float sums[kTiles][2][4];
  KITH_UNROLL
  for (int tile = 0; tile < kTiles; ++tile) end.start(sums[tile]);
  KITH_UNROLL
  for (int step = 0; step < kNarrowSteps; ++step) {
    KITH_UNROLL
    for (int tile = 0; tile < kTiles; ++tile) {
      const uint2 loaded = load_operand(operands, kNarrowQueries, step, query_tile + tile);
      const uint32_t b[2] = {loaded.x, loaded.y};
      ptx::multiply_add(sums[tile][0], vectors[0][step], b);
      ptx::multiply_add(sums[tile][1], vectors[1][step], b);
    }
  }
  KITH_UNROLL
  for (int tile = 0; tile < kTiles; ++tile) end.tile(sums[tile], query_tile + tile);
}

// The codes of a warp's 32 vectors: those past the last are the last one's.
template <typename Decoder>
struct HeldCodes {
  typename Decoder::Held codes[4];

  __device__ HeldCodes(const Decoder& decoder, const uint8_t* first, int64_t code_bytes, int last) {
    const int row = static_cast<int>(threadIdx.x) % 32 / 4;
    KITH_UNROLL
    for (int i = 0; i < 4; ++i) codes[i] = decoder.hold(first + min(row + 8 * i, last) * code_bytes);
  }

  template <bool kFull>
  __device__ void decode(const Decoder& decoder, uint32_t (&vectors)[2][kNarrowSteps][4]) const {
    KITH_UNROLL
    for (int step = 0; step < kNarrowSteps; ++step) {
      KITH_UNROLL
      for (int i = 0; i < 4; ++i) {
        const uint2 halves = decoder.template four<kFull>(codes[i], step);
        vectors[i / 2][step][i % 2] = halves.x;
        vectors[i / 2][step][2 + i % 2] = halves.y;
      }
    }
  }
};

template <typename Decoder, bool kFirst>
__device__ void scan_narrow(const ScanListsTask& task, const Item& item, int64_t code_bytes, const Decoder& decoder,
                            const BlockMemory& memory) {
  const int query_tiles = (item.queries + kTileQueries - 1) / kTileQueries;
  const int64_t first_position = task.lists.offsets[item.list] + item.first_row;
  const uint8_t* const codes = task.lists.codes + first_position * code_bytes;
  const auto hold = [&](int tile) {
    const int row = min(tile * kTileRows, item.rows - 1);
    return HeldCodes<Decoder>(decoder, codes + row * code_bytes, code_bytes, item.rows - 1 - row);
  };
  TileEnd<kFirst> end(task, item, memory);
  const bool full = decoder.full();
  int tile = static_cast<int>(threadIdx.x) / 32;
  HeldCodes<Decoder> held = hold(tile);
  for (; tile * kTileRows < item.rows; tile += kWarps) {
    uint32_t vectors[2][kNarrowSteps][4];
    if (full) {
      held.template decode<true>(decoder, vectors);
    } else {
      held.template decode<false>(decoder, vectors);
    }
    held = hold(tile + kWarps);
    end.begin(first_position + tile * kTileRows, item.first_row + tile * kTileRows);
    int query_tile = 0;
    for (; query_tile + 1 < query_tiles; query_tile += 2) {
      multiply_narrow<2, kFirst>(vectors, memory.operands, query_tile, end);
    }
    if (query_tile < query_tiles) {
      multiply_narrow<1, kFirst>(vectors, memory.operands, query_tile, end);
    }
  }
}

// Any number of columns, up to 32 queries whose sums are in registers.
template <typename Decoder, bool kFirst>
__device__ void scan_wide(const ScanListsTask& task, const Item& item, int64_t code_bytes, int steps,
                          const Decoder& decoder, const BlockMemory& memory) {
  const int query_tiles = (item.queries + kTileQueries - 1) / kTileQueries;
  const int64_t first_position = task.lists.offsets[item.list] + item.first_row;
  const uint8_t* const codes = task.lists.codes + first_position * code_bytes;
  TileEnd<kFirst> end(task, item, memory);
  for (int tile = static_cast<int>(threadIdx.x) / 32; tile * kTileRows < item.rows; tile += kWarps) {
    const int row = tile * kTileRows;
    const HeldCodes<Decoder> held(decoder, codes + row * code_bytes, code_bytes, item.rows - 1 - row);
    end.begin(first_position + row, item.first_row + row);
    float sums[kWideTiles][2][4];
    KITH_UNROLL
    for (int query_tile = 0; query_tile < kWideTiles; ++query_tile) end.start(sums[query_tile]);
    for (int step = 0; step < steps; ++step) {
      uint32_t vectors[2][4];
      KITH_UNROLL
      for (int i = 0; i < 4; ++i) {
        const uint2 halves = decoder.template four<false>(held.codes[i], step);
        vectors[i / 2][i % 2] = halves.x;
        vectors[i / 2][2 + i % 2] = halves.y;
      }
      KITH_UNROLL
      for (int query_tile = 0; query_tile < kWideTiles; ++query_tile) {
        if (query_tile >= query_tiles) break;
        const uint2 loaded = load_operand(memory.operands, task.cut.group_queries, step, query_tile);
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
    scan_lists_kernel(const __grid_constant__ ScanListsTask task, int64_t code_bytes, int steps) {
  extern __shared__ __align__(128) std::byte shared[];
  const int64_t table_bytes = Decoder::kHasTable ? task.lists.codec.format.cols * 512 : 0;
  const BlockLayout layout(table_bytes, steps, task.cut.group_queries);
  const BlockMemory memory{shared + layout.table,
                           shared + layout.operands,
                           reinterpret_cast<float*>(shared + layout.origin),
                           reinterpret_cast<PairFacts*>(shared + layout.facts),
                           reinterpret_cast<ScanQuery*>(shared + layout.queries),
                           reinterpret_cast<float*>(shared + layout.limits),
                           reinterpret_cast<Item*>(shared + layout.item)};
  ptx::wait_for_kernel_before();
  const uint32_t all_items = task.items[task.lists.lists];
  const float scale = operand_scale(*task.prepared.largest);
  const Decoder decoder(DecoderInput{task.lists, task.prepared, scale, memory.origin, memory.table});
  const auto take_item = [&] {  // a warp
    uint32_t index = 0;
    if (threadIdx.x % 32 == 0) index = atomicAdd(task.counter, 1u);
    index = __shfl_sync(kWarp, index, 0);
    Item item{0, 0, 0, 0, 0};
    if (index < all_items) {
      const int64_t list = find_list(task.items, task.lists.lists, index);
      item = make_item<kFirst>(task, list, static_cast<int>(index - task.items[list]));
    }
    if (threadIdx.x % 32 == 0) *memory.item = item;
    __syncwarp();
  };
  if (threadIdx.x < 32) take_item();
  __syncthreads();
  if (Decoder::kHasTable && memory.item->queries > 0) {
    const auto* const from = reinterpret_cast<const uint4*>(task.prepared.table);
    for (int64_t i = threadIdx.x; i < table_bytes / 16; i += kThreads) {
      reinterpret_cast<uint4*>(memory.table)[i] = from[i];
    }
  }
  for (;;) {
    __syncthreads();
    const Item item = *memory.item;
    if (item.queries == 0) return;
    load_origin(task, item, scale, steps, memory.origin);
    __syncthreads();
    load_queries<kFirst>(task, item, scale, steps, memory);
    __syncthreads();
    if (threadIdx.x >= kThreads - 32) take_item();  // the next one, while the others begin
    if constexpr (kWide) {
      scan_wide<Decoder, kFirst>(task, item, code_bytes, steps, decoder, memory);
    } else {
      scan_narrow<Decoder, kFirst>(task, item, code_bytes, decoder, memory);
    }
    __syncthreads();  // all have read what the next item replaces
  }
}

bool is_wide(const CodeFormat& format) { return format.cols > kNarrowSteps * 16; }

int steps_of(const CodeFormat& format) {
  return is_wide(format) ? static_cast<int>(divide_up(format.cols, 16)) : kNarrowSteps;
}

template <typename Decoder, bool kFirst, bool kWide>
void launch(const ScanListsTask& task, cudaStream_t stream) {
  const CodeFormat& format = task.lists.codec.format;
  if (task.cut.group_queries != scan_group_queries(format)) {
    throw InvalidArgument("groups of " + std::to_string(task.cut.group_queries) +
                          " queries are not what a block holds");
  }
  const int steps = steps_of(format);
  const BlockLayout layout(Decoder::kHasTable ? format.cols * 512 : 0, steps, task.cut.group_queries);
  const auto kernel = scan_lists_kernel<Decoder, kFirst, kWide>;
  allow_all_shared_memory(reinterpret_cast<const void*>(kernel));
  launch_chained({kBlocks * task.multiprocessors, kThreads, layout.bytes, stream}, "launch of scan_lists_kernel",
                 kernel, task, format.bytes(), steps);
}

template <bool kFirst>
void launch_pass(const ScanListsTask& task, cudaStream_t stream) {
  const CodeFormat& format = task.lists.codec.format;
  if (is_wide(format)) return launch<AnyDecoder, kFirst, true>(task, stream);
  if (has_half_table(format)) return launch<CodewordDecoder, kFirst, false>(task, stream);
  if (format.kind == CodeKind::stored && format.cols % 4 == 0) {
    if (format.dtype == DType::f32) return launch<StoredDecoder<float>, kFirst, false>(task, stream);
    if (format.dtype == DType::f16) return launch<StoredDecoder<uint16_t>, kFirst, false>(task, stream);
  }
  launch<AnyDecoder, kFirst, false>(task, stream);
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

void launch_scan_first(const ScanListsTask& task, cudaStream_t stream) { launch_pass<true>(task, stream); }
void launch_scan_later(const ScanListsTask& task, cudaStream_t stream) { launch_pass<false>(task, stream); }

}  // namespace kith
