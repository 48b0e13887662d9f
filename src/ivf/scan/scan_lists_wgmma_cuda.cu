// The scan of lists with Hopper's products of warpgroups.
//
// Two blocks of two warpgroups stay on a multiprocessor and take item after item, whichever is next. A warpgroup
// decodes 64 vectors at a time to halves in registers, the products' left operand, and multiplies them with up to 64
// queries at a time, the right operand, from shared memory. While one decodes or looks at its products the others
// multiply. Shared memory is what is short: a tile of vectors takes 340 to 400 of its cycles to decode from tables, and
// two for each query, where the products of a query take four of the matrix units'.
#include "ivf/scan/scan_lists_task_cuda.hpp"

#include "core/divide.hpp"
#include "cuda/launch.hpp"
#include "cuda/ptx_hopper.hpp"
#include "cuda/shared_memory.hpp"
#include "cuda/vector_access.hpp"
#include "ivf/scan/scan_decoders_cuda.hpp"
#include "ivf/scan/scan_item_cuda.hpp"
#include "ivf/scan/warpgroup_sums_cuda.hpp"
#include "rows/kept_rows_cuda.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace kith {

namespace {

// A warpgroup's view of an item's vectors, in tiles of 64: the addresses of their codes, the registers that hold a tile
// before its use, and the copies of stored vectors in shared memory.
constexpr int kStagedBytes = 32 << 10;  // of a warpgroup: one tile of f32, two of f16
static_assert(kSampleRows == kGroupRows, "a tile of the first pass lies together");

// Tiles of stored vectors in shared memory, which the copy engine brings: of one warpgroup. They are asked for and used
// in the same order, from the first item to the last; where an item has no more to ask for, the next one's first tiles
// are, so that memory does not wait while queries are loaded.
template <int kStages>
class StagedTiles {
 public:
  static constexpr int kTiles = kStages;

  __device__ StagedTiles(std::byte* memory, uint64_t* barriers)
      : memory_(memory + threadIdx.x / kGroupThreads * kStagedBytes),
        barriers_(barriers + threadIdx.x / kGroupThreads * kStages) {}

  // By one thread, before a barrier of the block.
  __device__ static void init(uint64_t* barriers) {
    for (int i = 0; i < kGroups * kStages; ++i) ptx::barrier_init(barriers + i, 1);
    ptx::barrier_init_fence();
  }

  __device__ void ask(const uint8_t* from, uint32_t bytes) {
    const uint32_t stage = asked_++ % kStages;
    if (threadIdx.x % kGroupThreads != 0) return;
    ptx::barrier_arrive_and_expect(barriers_ + stage, bytes);
    ptx::copy_bulk(memory_ + stage * (kStagedBytes / kStages), from, bytes, barriers_ + stage);
  }
  __device__ const uint8_t* wait() const {
    const uint32_t stage = used_ % kStages;
    ptx::barrier_wait(barriers_ + stage, used_ / kStages & 1);
    return vectors<uint8_t>(memory_ + stage * (kStagedBytes / kStages));
  }
  // All of the warpgroup have read the tile.
  __device__ void done() {
    ++used_;
    ptx::turn_wait(1 + static_cast<int>(threadIdx.x) / kGroupThreads, kGroupThreads);
  }

  // How many tiles of the next item have been asked for.
  __device__ int ahead() const { return ahead_; }
  __device__ void ask_ahead(const uint8_t* from, uint32_t bytes) {
    ask(from, bytes);
    ++ahead_;
  }
  __device__ void begin_item() { ahead_ = 0; }
  // For an item that is not scanned: waits for outstanding copies and drops them.
  __device__ void skip_item() {
    for (; ahead_ > 0; --ahead_) {
      wait();
      done();
    }
  }

 private:
  std::byte* memory_;
  uint64_t* barriers_;
  uint32_t asked_ = 0;
  uint32_t used_ = 0;
  int ahead_ = 0;
};

struct NothingStaged {
  __device__ NothingStaged(std::byte*, uint64_t*) {}
  __device__ static void init(uint64_t*) {}
  __device__ void skip_item() {}
};

// Codes of a tile, read ahead of their use.
template <typename Decoder>
struct HeldTile {
  HeldCodes<Decoder, 2> codes;
  float terms[2];  // NaN for what a filter leaves out
};

// The addresses of an item's codes, by tile.
template <bool kFirst>
class ItemCodes {
 public:
  __device__ ItemCodes(const ScanListsTask& task, const ScanItem& item, int64_t code_bytes)
      : position_(task.lists.offsets[item.list] + (kFirst ? item.row_at(item.first_row) : item.first_row)),
        codes_(task.lists.codes + position_ * code_bytes),
        rows_(item.rows),
        apart_(static_cast<uint32_t>(kGroupRows) * (kFirst ? item.every : 1)),
        code_bytes_(static_cast<uint32_t>(code_bytes)) {}

  __device__ int64_t position() const { return position_; }  // of its first vector
  __device__ const uint8_t* first() const { return codes_; }
  __device__ uint32_t apart() const { return apart_; }  // tiles, in vectors
  __device__ const uint8_t* tile(int tile) const { return codes_ + static_cast<uint32_t>(tile) * apart_ * code_bytes_; }
  __device__ uint32_t bytes(int tile) const {
    return static_cast<uint32_t>(min(rows_ - tile * kGroupRows, kGroupRows)) * code_bytes_;
  }

 private:
  int64_t position_;
  const uint8_t* codes_;
  int rows_;
  uint32_t apart_;
  uint32_t code_bytes_;
};

// The tiles of an item that this warpgroup has, every other one. Offsets are of 32 bits, from where the item begins.
template <typename Decoder, bool kFirst>
class ItemTiles {
 public:
  __device__ ItemTiles(const ScanListsTask& task, const ScanItem& item, const Decoder& decoder, int64_t code_bytes)
      : decoder_(decoder),
        all_(task, item, Decoder::kFixedBytes != 0 ? Decoder::kFixedBytes : code_bytes),
        rows_(item.rows),
        code_bytes_(static_cast<uint32_t>(Decoder::kFixedBytes != 0 ? Decoder::kFixedBytes : code_bytes)),
        lane_row_(static_cast<int>(threadIdx.x) % kGroupThreads / 32 * kWarpRows +
                  static_cast<int>(threadIdx.x) % 32 / 4) {
    terms_ = task.prepared.terms == nullptr ? nullptr : task.prepared.terms + all_.position();
    kept_ = task.kept;
    numbers_ = task.lists.rows + all_.position();
  }

  __device__ int lane_row() const { return lane_row_; }
  __device__ bool has(int tile) const { return tile * kGroupRows < rows_; }
  __device__ const uint8_t* codes(int tile) const { return all_.tile(tile); }
  __device__ uint32_t bytes(int tile) const { return all_.bytes(tile); }

  // The terms of a tile that was held. NaN for what is past the last vector: it is below nothing. Not before they are
  // used, since a look at a value waits for its load.
  __device__ void take_terms(int tile, const HeldTile<Decoder>& held, float (&terms)[2]) const {
    const int last = rows_ - 1 - tile * kGroupRows;
    terms[0] = lane_row_ <= last ? held.terms[0] : NAN;
    terms[1] = lane_row_ + 8 <= last ? held.terms[1] : NAN;
  }

  // Past the last tile, loads the last one again, unused. Codes past the last one are copies of it.
  __device__ void hold(int tile, HeldTile<Decoder>& held) const {
    tile = min(tile, (rows_ - 1) / kGroupRows);
    const int last = rows_ - 1 - tile * kGroupRows;
    const uint32_t start = static_cast<uint32_t>(tile) * all_.apart();
    KITH_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int row = lane_row_ + 8 * i;
      const uint32_t at = start + static_cast<uint32_t>(min(row, last));
      if constexpr (!Decoder::kStaged) held.codes.codes[i] = decoder_.hold(all_.first() + at * code_bytes_);
      held.terms[i] = terms_ == nullptr ? 0.0f : __ldg(terms_ + at);
      if (kept_ != nullptr && !is_kept(kept_, numbers_[at])) held.terms[i] = NAN;
    }
  }

 private:
  const Decoder& decoder_;
  ItemCodes<kFirst> all_;
  const float* terms_;
  const uint64_t* kept_;
  const uint32_t* numbers_;
  int rows_;
  uint32_t code_bytes_;
  int lane_row_;
};

// Starts copying the first tiles of the next item, as many as there are buffers for.
template <bool kFirst, typename Staged>
__device__ inline void ask_next_item(const ScanListsTask& task, const ScanItem& next, int64_t code_bytes,
                                     Staged& staged) {
  const int tile = static_cast<int>(threadIdx.x) / kGroupThreads + staged.ahead() * kGroups;
  if (next.queries == 0 || tile * kGroupRows >= next.rows) return;
  const ItemCodes<kFirst> codes(task, next, code_bytes);
  staged.ask_ahead(codes.tile(tile), codes.bytes(tile));
}

constexpr int kThreads = kGroups * kGroupThreads;
constexpr int kBlocks = 2;  // of a multiprocessor

// What is loaded of queries is used up when the scan begins and has hits instead.
struct BlockLayout : SharedLayout {
  Slot<std::byte> operands, table;
  Slot<float> origin;
  Slot<uint2> hits;
  Slot<LoadedQuery> loaded;
  Slot<ScanQuery> queries;
  Slot<float> limits;
  Slot<ScanItem> item;
  Slot<int> listed;
  Slot<uint64_t> barriers;

  KITH_HOST_DEVICE BlockLayout(int64_t table_bytes, int steps) {
    constexpr int64_t kLoadedBytes = kNarrowQueries * static_cast<int64_t>(sizeof(LoadedQuery));
    constexpr int64_t kHitBytes = kThreads / 32 * kWarpHits * static_cast<int64_t>(sizeof(uint2));
    constexpr int64_t kShared = kHitBytes > kLoadedBytes ? kHitBytes : kLoadedBytes;
    operands = take<std::byte>((steps + kQueryChunkSteps - 1) / kQueryChunkSteps * kQueryChunkBytes);
    table = take<std::byte>(table_bytes);
    origin = take<float>(kNarrowSteps * 16);
    hits = take<uint2>(kShared / static_cast<int64_t>(sizeof(uint2)));
    loaded = {hits.offset, kNarrowQueries};
    queries = take<ScanQuery>(kNarrowQueries);
    limits = take<float>(kNarrowQueries);
    item = take<ScanItem>(2);
    listed = take<int>(2);
    barriers = take<uint64_t>(4);
  }
};

// `next_item`: the item after this one, in shared memory; without queries where there is none.
template <typename Decoder, int kSteps, bool kFirst, typename Staged>
__device__ inline void scan_item(const ScanListsTask& task, const ScanItem& item, const ScanItem& next_item,
                                 int queries, int64_t code_bytes, const Decoder& decoder,
                                 const WarpgroupOperands& operands, const ScanMemory& memory, uint2* hits,
                                 Staged& staged) {
  // Queries at a time, such that sums and vectors stay in registers; in the first pass few lists have more than
  // eight.
  constexpr int kMost = kFirst ? 2 : 8;  // of eight
  const int tiles_of_queries = (queries + kTileQueries - 1) / kTileQueries;
  const ItemTiles<Decoder, kFirst> tiles(task, item, decoder, code_bytes);
  TileEnd<kFirst> end(task, item, queries, memory, hits);
  const bool full = decoder.full(kSteps);
  const uint32_t start = operands.start();
  int tile = static_cast<int>(threadIdx.x) / kGroupThreads;
  if (!tiles.has(tile)) return end.finish();
  if constexpr (Decoder::kStaged) {
    for (int ahead = staged.ahead(); ahead < Staged::kTiles; ++ahead) {
      const int next = tile + ahead * kGroups;
      if (tiles.has(next)) staged.ask(tiles.codes(next), tiles.bytes(next));
    }
    staged.begin_item();
  }
  HeldTile<Decoder> held;
  tiles.hold(tile, held);
  for (; tiles.has(tile); tile += kGroups) {
    uint32_t vectors[kSteps][1][4];
    if constexpr (Decoder::kStaged) {
      const uint8_t* const rows = staged.wait() + tiles.lane_row() * code_bytes;
      KITH_UNROLL
      for (int i = 0; i < 2; ++i) held.codes.codes[i] = decoder.hold(rows + 8 * i * code_bytes);
    }
    if (Decoder::kAlwaysFull || full) {
      held.codes.template decode_all<true>(decoder, vectors);
    } else {
      held.codes.template decode_all<false>(decoder, vectors);
    }
    if constexpr (Decoder::kStaged) {
      staged.done();
      const int next = tile + Staged::kTiles * kGroups;
      if (tiles.has(next)) {
        staged.ask(tiles.codes(next), tiles.bytes(next));
      } else {
        ask_next_item<kFirst>(task, next_item, code_bytes, staged);
      }
    }
    float terms[2];
    tiles.take_terms(tile, held, terms);
    tiles.hold(tile + kGroups, held);
    __syncwarp();
    const auto row = static_cast<uint32_t>(tile * kGroupRows + tiles.lane_row());
    int at = 0;
    int left = tiles_of_queries;
    for (; left >= kMost; left -= kMost, at += 8 * kMost) {
      multiply_tile<8 * kMost, kSteps, kFirst>(vectors, terms, row, operands, start, at, end);
    }
    if constexpr (!kFirst) {
      if (left >= 4) {
        multiply_tile<32, kSteps, kFirst>(vectors, terms, row, operands, start, at, end);
        left -= 4;
        at += 32;
      }
      if (left >= 2) {
        multiply_tile<16, kSteps, kFirst>(vectors, terms, row, operands, start, at, end);
        left -= 2;
        at += 16;
      }
    }
    if (left >= 1) multiply_tile<8, kSteps, kFirst>(vectors, terms, row, operands, start, at, end);
  }
  end.finish();
}

// What an item begins with, brought as near as the second-level cache: its centre, terms and first codes; by a warp.
__device__ inline void prefetch_item(const ScanListsTask& task, const ScanItem& item, int64_t code_bytes) {
  constexpr int64_t kMostBytes = 8 << 10;
  const int64_t position = task.lists.offsets[item.list] + item.first_row;
  const int64_t line = threadIdx.x % 32 * 128;
  const int64_t cols = task.lists.codec.format.cols;
  const auto bring = [&](const void* from, int64_t bytes) {
    if (bytes > kMostBytes) bytes = kMostBytes;
    for (int64_t at = line; at < bytes; at += 32 * 128) ptx::prefetch(static_cast<const uint8_t*>(from) + at);
  };
  if (task.lists.has_origin()) bring(task.lists.centres + item.list * cols, cols * 4);
  if (task.prepared.terms != nullptr) bring(task.prepared.terms + position, int64_t{item.rows} * 4);
  bring(task.lists.codes + position * code_bytes, item.rows * code_bytes);
}

template <typename Decoder, int kSteps, bool kFirst>
__global__ void __launch_bounds__(kThreads, kBlocks)
    scan_lists_wgmma_kernel(const __grid_constant__ ScanListsTask task, int64_t code_bytes, int64_t table_bytes) {
  extern __shared__ __align__(1024) std::byte shared[];
  const BlockLayout layout(table_bytes, kSteps);
  const ScanMemory memory{layout.table.in(shared),  layout.operands.in(shared), layout.origin.in(shared),
                          layout.loaded.in(shared), layout.queries.in(shared),  layout.limits.in(shared),
                          layout.item.in(shared),   layout.listed.in(shared)};
  const WarpgroupOperands operands(memory.operands, kSteps,
                                   Decoder::kPaired ? UnitOrder::paired : unit_order(task.lists.codec.format));
  using Staged = std::conditional_t<Decoder::kStaged, StagedTiles<Decoder::kStages>, NothingStaged>;
  uint64_t* const barriers = layout.barriers.in(shared);
  if (Decoder::kStaged && threadIdx.x == 0) Staged::init(barriers);
  Staged staged(memory.table, barriers);
  // The table is older than the kernel before.
  if (Decoder::kHasTable) {
    const auto* const from = vectors<uint4>(task.prepared.table);
    for (int64_t i = threadIdx.x; i < table_bytes / 16; i += kThreads) {
      vectors<uint4>(memory.table)[i] = from[i];
    }
  }
  const float scale = operand_scale(*task.prepared.largest);
  ptx::wait_for_kernel_before();
  const uint32_t all_items = task.items[task.lists.lists];
  const Decoder decoder(DecoderInput{task.lists, task.prepared, scale, memory.origin, memory.table});
  int turn = 0;            // of the two items: the one at work, and the next
  const auto take = [&] {  // by a warp
    const ScanItem item = take_item<kFirst>(task, all_items);
    if (threadIdx.x % 32 == 0) memory.item[turn] = item;
    if (item.queries > 0) prefetch_item(task, item, code_bytes);
    __syncwarp();
  };
  if (threadIdx.x < 32) take();
  if (threadIdx.x == 0) *memory.listed = 0;
  for (;;) {
    __syncthreads();  // all have read what this item replaces
    const ScanItem item = memory.item[turn];
    if (item.queries == 0) return;
    turn ^= 1;
    const int queries = load_queries<kFirst>(task, item, scale, operands, memory, take);
    if (queries > 0) {
      scan_item<Decoder, kSteps, kFirst>(task, item, memory.item[turn], queries, code_bytes, decoder, operands, memory,
                                         layout.hits.in(shared), staged);
    } else {
      staged.skip_item();
    }
  }
}

template <typename Decoder, int kSteps, bool kFirst>
void launch_with(const ScanListsTask& task, cudaStream_t stream) {
  const CodeFormat& format = task.lists.codec.format;
  const int64_t table_bytes = Decoder::kHasTable ? table_steps(format) * kTableStepBytes
                              : Decoder::kStaged ? int64_t{kGroups} * kStagedBytes
                                                 : 0;
  const auto kernel = scan_lists_wgmma_kernel<Decoder, kSteps, kFirst>;
  allow_all_shared_memory(kernel);
  const int64_t shared = BlockLayout(table_bytes, kSteps).bytes;
  launch(kernel, Grid::of(kBlocks * task.multiprocessors, kThreads).with_shared(shared).chained(), stream, task,
         task.scanned_bytes(), table_bytes);
}

template <bool kFirst>
void launch_pass(const ScanListsTask& task, cudaStream_t stream) {
  const CodeFormat& format = task.lists.codec.format;
  const bool all = format.cols == kNarrowSteps * 16;
  if (task.prepared.halves != nullptr)
    return launch_with<StagedDecoder<PreparedHalf>, kNarrowSteps, kFirst>(task, stream);
  if (has_half_table(format)) {
    if (format.part_cols() == 2) return launch_with<PairDecoder, kNarrowSteps, kFirst>(task, stream);
    if (format.part_cols() == 3 && table_steps(format) <= 6) return launch_with<TripleDecoder, 6, kFirst>(task, stream);
    if (format.part_cols() == 3) return launch_with<TripleDecoder, kNarrowSteps, kFirst>(task, stream);
    if (all && format.part_cols() == 4) return launch_with<WordDecoder<32>, kNarrowSteps, kFirst>(task, stream);
    if (all && format.part_cols() == 16) return launch_with<WordDecoder<8>, kNarrowSteps, kFirst>(task, stream);
    if (table_steps(format) <= 5) return launch_with<WordDecoder<0>, 5, kFirst>(task, stream);
    return launch_with<WordDecoder<0>, kNarrowSteps, kFirst>(task, stream);
  }
  // The copy engine wants multiples of 16 bytes.
  if (format.stores_values() && format.bytes() % 16 == 0) {
    if (format.dtype == DType::f32) return launch_with<StagedDecoder<float>, kNarrowSteps, kFirst>(task, stream);
    if (format.dtype == DType::f16) return launch_with<StagedDecoder<uint16_t>, kNarrowSteps, kFirst>(task, stream);
  }
  launch_with<AnyDecoder, kNarrowSteps, kFirst>(task, stream);
}

}  // namespace

void launch_scan_wgmma(const ScanListsTask& task, bool first, cudaStream_t stream) {
  if (first) return launch_pass<true>(task, stream);
  launch_pass<false>(task, stream);
}

}  // namespace kith
