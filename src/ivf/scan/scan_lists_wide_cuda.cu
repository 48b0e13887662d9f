// The scan of lists of vectors of any number of columns, with Hopper's products of warpgroups.
//
// A block stays on its multiprocessor and takes item after item. Columns are walked in chunks of 64: one warpgroup
// brings the chunks of 128 vectors and of up to 192 queries (pair_operands_cuda.cu) to a ring of stages in shared
// memory and runs ahead of the two others, of which each multiplies 64 of the vectors with all queries. Halves of
// vectors are copied as they are; codewords too, by their numbers, from a table of halves that the caches hold; all
// else is decoded. So the columns of a vector cost the same whatever their number. Shared memory holds no whole vector
// and no whole query.
//
// Bound by what the second-level cache gives: a chunk of 128 vectors is 16 KiB, codewords shorter than a sector up to
// twice that, and one of 160 queries 20 KiB, where their products take 640 cycles.
#include "ivf/scan/scan_lists_task_cuda.hpp"

#include "cuda/launch.hpp"
#include "cuda/ptx_hopper.hpp"
#include "cuda/shared_memory.hpp"
#include "cuda/vector_access.hpp"
#include "ivf/scan/scan_item_cuda.hpp"
#include "ivf/scan/scan_queries_cuda.hpp"
#include "ivf/scan/warpgroup_sums_cuda.hpp"
#include "kernels/codes/code_reader_cuda.hpp"
#include "rows/kept_rows_cuda.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace kith {
namespace {

constexpr int kMultipliers = kGroups * kGroupThreads;
constexpr int kProducers = kGroupThreads;
constexpr int kThreads = kMultipliers + kProducers;
constexpr int kMultiplierRegisters = 216;  // of 168 that all begin with
constexpr int kProducerRegisters = 72;
constexpr int kTileRows = kGroups * kGroupRows;
constexpr int kRowBytes = 2 * kWideChunkCols;
constexpr int kUnits = kRowBytes / 16;  // of a row's chunk
constexpr int kSteps = kWideChunkCols / 16;
constexpr int kStages = 5;
constexpr int kVectorBytes = kTileRows * kRowBytes;
constexpr int kStageBytes = kVectorBytes + kWideQueries * kRowBytes;
constexpr int kItems = 4;  // that may be under way
static_assert(kSampleRows == kGroupRows, "a warpgroup's vectors of the first pass lie together");
static_assert(kMultipliers >= kWideQueries, "a thread for each query's limit");

struct Barriers {
  uint64_t full[kStages];
  uint64_t empty[kStages];
  uint64_t item_full[kItems];
  uint64_t item_empty[kItems];
};

struct BlockLayout : SharedLayout {
  Slot<std::byte> ring;
  Slot<uint2> hits;
  Slot<float2> gains;  // of cosine's queries, for two items in turn
  Slot<float> limits;  // likewise
  Slot<Barriers> barriers;
  Slot<ScanItem> items;

  KITH_HOST_DEVICE BlockLayout() {
    ring = take<std::byte>(int64_t{kStages} * kStageBytes);
    hits = take<uint2>(kMultipliers / 32 * kWarpHits);
    gains = take<float2>(2 * kWideQueries);
    limits = take<float>(2 * kWideQueries);
    barriers = take<Barriers>(1);
    items = take<ScanItem>(kItems);
  }
};

struct BlockMemory {
  std::byte* ring;
  uint2* hits;
  float2* gains;
  float* limits;
  Barriers* barriers;
  ScanItem* items;
};

// A place in a ring, and the parity of its current round.
template <int kPlaces>
struct Place {
  int at = 0;
  uint32_t parity = 0;

  __device__ void advance() {
    if (++at < kPlaces) return;
    at = 0;
    parity ^= 1;
  }
};

// The offset of a row's 16-byte unit in its chunk.
__device__ inline uint32_t unit_at(uint32_t chunk, int row, int unit) {
  return chunk + static_cast<uint32_t>(row * kRowBytes + ((unit ^ (row % 8)) * 16));
}

// The places of the vectors of an item's tile: 64 consecutive ones per warpgroup, repeating the last one at the end.
class TileRows {
 public:
  template <bool kFirst>
  __device__ static TileRows of(const ScanListsTask& task, const ScanItem& item, int64_t code_bytes, int first) {
    TileRows tile;
    tile.bytes_ = static_cast<uint32_t>(code_bytes);
    const int64_t start = task.lists.offsets[item.list];
    KITH_UNROLL
    for (int group = 0; group < kGroups; ++group) {
      const int from = first + group * kGroupRows < item.rows ? first + group * kGroupRows : first;
      const uint32_t number = item.first_row + static_cast<uint32_t>(from);
      const int64_t position = start + (kFirst ? item.row_at(number) : number);
      tile.codes_[group] = task.lists.codes + position * code_bytes;
      tile.last_[group] = min(item.rows - from, kGroupRows) - 1;
    }
    return tile;
  }

  __device__ const uint8_t* code(int row) const {
    const bool second = row >= kGroupRows;
    const int within = min(row % kGroupRows, second ? last_[1] : last_[0]);
    return (second ? codes_[1] : codes_[0]) + static_cast<uint32_t>(within) * bytes_;
  }

 private:
  const uint8_t* codes_[kGroups];
  int last_[kGroups];
  uint32_t bytes_;
};

__device__ inline int producer() { return static_cast<int>(threadIdx.x) - kMultipliers; }

// Copies vectors stored as fp16: a thread copies a unit of every 16th one.
class HalvesCopy {
 public:
  static constexpr bool kStores = false;  // by instructions that end before the next, not by copies under way

  __device__ explicit HalvesCopy(const ScanListsTask& task)
      : half_cols_(static_cast<int>(PreparedLists::half_cols(task.lists.codec.format.cols))) {}

  __device__ void begin_tile(const TileRows& rows, uint32_t) { rows_ = rows; }
  __device__ void bring(int chunk, uint32_t to) const {
    const int unit = producer() % kUnits;
    const int col = chunk * kWideChunkCols + unit * 8;
    const bool there = col < half_cols_;
#pragma unroll
    for (int row = producer() / kUnits; row < kTileRows; row += kProducers / kUnits) {
      ptx::copy_async_16(unit_at(to, row, unit), vectors<uint16_t>(rows_.code(row)) + (there ? col : 0), there);
    }
  }

 private:
  TileRows rows_;
  int half_cols_;
};

// 8-bit codes: copies the codewords' fp16 values from a table (scan_cut.hpp), eight columns at a time if these belong
// to one part, else kTogether columns. One thread per vector.
template <int kTogether>
class CodewordCopy {
 public:
  static constexpr bool kStores = false;

  __device__ explicit CodewordCopy(const ScanListsTask& task)
      : table_(task.prepared.table),
        cols_(static_cast<int>(task.lists.codec.format.cols)),
        code_bytes_(static_cast<int>(task.lists.codec.format.parts)),
        part_cols_(static_cast<uint32_t>(task.lists.codec.format.part_cols())),
        places_(static_cast<uint32_t>(codeword_places(part_cols_))),
        inverse_(0xFFFFFFFFu / (part_cols_ / kTogether) + 1),
        whole_(code_bytes_ % 16 == 0 && is_aligned(task.lists.codes, 16)) {}

  __device__ void begin_tile(const TileRows& rows, uint32_t) {
    code_ = rows.code(producer());
    window_ = 0;
    now_ = numbers(0);
    next_ = numbers(1);
  }

  // Chunks come in their order. Branches are the same for all threads.
  __device__ void bring(int chunk, uint32_t to) {
#pragma unroll
    for (int unit = 0; unit < kUnits; ++unit) {
      const int col = chunk * kWideChunkCols + unit * 8;
      const uint32_t at = unit_at(to, producer(), unit);
      if constexpr (kTogether == 8) {
        ptx::copy_async_cached_16(at, from(col), col < cols_);
      } else if constexpr (kTogether == 4) {
        if (part_of(col) == part_of(col + 4) && col + 4 < cols_) {
          ptx::copy_async_cached_16(at, from(col), true);
        } else {
          ptx::copy_async_8(at, from(col), col < cols_);
          ptx::copy_async_8(at + 8, from(col + 4), col + 4 < cols_);
        }
      } else {
        KITH_UNROLL
        for (int i = 0; i < 8; i += 2) {
          ptx::copy_async_4(at + static_cast<uint32_t>(2 * i), from(col + i), col + i < cols_);
        }
      }
    }
  }

 private:
  // Right for fewer than 65,536 times kTogether; a part of kTogether columns has an inverse of 2^32, which is 0 here.
  __device__ uint32_t part_of(int col) const {
    const uint32_t number = static_cast<uint32_t>(col) / kTogether;
    return inverse_ == 0 ? number : __umulhi(number, inverse_);
  }

  // The vector's halves from this column on, to the end of the part; columns come in their order. Anywhere in the table
  // past the last one.
  __device__ const uint16_t* from(int col) {
    if (col >= cols_) return table_;
    const uint32_t part = part_of(col);
    if (static_cast<int>(part / 16) != window_) {
      window_ = static_cast<int>(part / 16);
      now_ = next_;
      next_ = numbers(window_ + 1);
    }
    const uint32_t word = part & 8 ? (part & 4 ? now_.w : now_.z) : (part & 4 ? now_.y : now_.x);
    const uint32_t code = __byte_perm(word, 0, 0x4440u + part % 4);
    const uint32_t begins = part * part_cols_;
    const uint32_t place = static_cast<uint32_t>(col) - (kTogether == 2 ? begins : begins & ~7u);
    return table_ + (part << 8 | code) * places_ + place;
  }

  // 16 of the code's numbers; zeros past the last.
  __device__ uint4 numbers(int window) const {
    const int first = 16 * window;
    if (first >= code_bytes_) return {0, 0, 0, 0};
    if (whole_) return __ldg(vectors<uint4>(code_ + first));
    uint32_t words[4] = {0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      if (first + i < code_bytes_) words[i / 4] |= static_cast<uint32_t>(__ldg(code_ + first + i)) << (8 * (i % 4));
    }
    return {words[0], words[1], words[2], words[3]};
  }

  const uint16_t* table_;
  const uint8_t* code_ = nullptr;
  int cols_;
  int code_bytes_;
  uint32_t part_cols_;
  uint32_t places_;
  uint32_t inverse_;
  bool whole_;
  int window_ = 0;
  uint4 now_ = {0, 0, 0, 0};
  uint4 next_ = {0, 0, 0, 0};
};

// Any code, where there was no room for halves.
class AnyDecode {
 public:
  static constexpr bool kStores = true;

  __device__ explicit AnyDecode(const ScanListsTask& task)
      : reader_(task.lists.codec, task.lists.codes),
        centres_(task.lists.subtracts() ? task.lists.centres : nullptr),
        scale_(operand_scale(*task.prepared.largest)),
        cols_(static_cast<int>(task.lists.codec.format.cols)) {}

  __device__ void begin_tile(const TileRows& rows, uint32_t list) {
    rows_ = rows;
    centre_ = centres_ == nullptr ? nullptr : centres_ + static_cast<int64_t>(list) * cols_;
  }
  __device__ void bring(int chunk, uint32_t to) const {
    const int unit = producer() % kUnits;
    const int col = chunk * kWideChunkCols + unit * 8;
    for (int row = producer() / kUnits; row < kTileRows; row += kProducers / kUnits) {
      const uint8_t* const code = rows_.code(row);
      ptx::store_16(unit_at(to, row, unit), four(code, col), four(code, col + 4));
    }
  }

 private:
  __device__ uint2 four(const uint8_t* code, int col) const {
    if (col >= cols_) return {0, 0};
    float4 origin = {0, 0, 0, 0};
    if (centre_ != nullptr) {
      const float4 own = four_columns(centre_, col, cols_);
      origin = {own.x * scale_, own.y * scale_, own.z * scale_, own.w * scale_};
    }
    return halves_of(reader_.four(code, col), scale_, origin);
  }

  AnyReader reader_;
  const float* centres_;
  const float* centre_ = nullptr;
  float scale_;
  int cols_;
  TileRows rows_;
};

// Brings items, vectors and queries; the third warpgroup.
template <bool kFirst, typename Vectors>
class Producer {
 public:
  __device__ Producer(const ScanListsTask& task, const BlockMemory& memory, int64_t code_bytes)
      : task_(task),
        memory_(memory),
        vectors_(task),
        all_items_(task.items[task.lists.lists]),
        code_bytes_(code_bytes) {
    if (producer() == 0) next_ = atomicAdd(task.counter, 1u);
  }

  __device__ void run() {
    for (;;) {
      const ScanItem item = take();
      if (item.queries == 0) break;
      for (int first = 0; first < item.rows; first += kTileRows) {
        vectors_.begin_tile(TileRows::of<kFirst>(task_, item, code_bytes_, first), item.list);
        for (int chunk = 0; chunk < chunks(); ++chunk) bring(item, chunk);
      }
    }
    ptx::copy_async_commit();
    ptx::copy_async_wait<0>();
  }

 private:
  __device__ int chunks() const { return static_cast<int>(task_.operands.stride) / kWideChunkCols; }

  // Takes the next free item that has queries and passes it to the multiplying warps. Meanwhile, requests the number of
  // the one after it.
  __device__ ScanItem take() {
    Barriers& barriers = *memory_.barriers;
    if (producer() < 32) {
      // Only the writing warp waits for the slot: another warp could arrive after the next phase has begun.
      ptx::barrier_wait(&barriers.item_empty[slot_.at], slot_.parity ^ 1);
      ScanItem item{};
      while (item.queries == 0) {
        const uint32_t index = __shfl_sync(0xFFFFFFFFu, next_, 0);
        if (index >= all_items_) break;
        if (producer() == 0) next_ = atomicAdd(task_.counter, 1u);
        const int64_t list = list_of_warp(task_.items, task_.lists.lists, index);
        item = make_item<kFirst, true>(task_, list, index - task_.items[list]);
      }
      if (producer() == 0) {
        memory_.items[slot_.at] = item;
        ptx::barrier_arrive(&barriers.item_full[slot_.at]);
      }
      __syncwarp();
    }
    ptx::barrier_wait(&barriers.item_full[slot_.at], slot_.parity);
    const ScanItem item = memory_.items[slot_.at];
    __syncwarp();
    if (producer() % 32 == 0) ptx::barrier_arrive(&barriers.item_empty[slot_.at]);
    slot_.advance();
    return item;
  }

  __device__ void bring(const ScanItem& item, int chunk) {
    Barriers& barriers = *memory_.barriers;
    ptx::barrier_wait(&barriers.empty[stage_.at], stage_.parity ^ 1);
    const uint32_t to = ptx::shared_address(memory_.ring) + static_cast<uint32_t>(stage_.at * kStageBytes);
    const int unit = producer() % kUnits;
    const auto stride = static_cast<uint32_t>(task_.operands.stride);
    const uint16_t* const queries =
        task_.operands.halves + static_cast<int64_t>(item.first_pair) * stride + chunk * kWideChunkCols + unit * 8;
#pragma unroll 4
    for (int query = producer() / kUnits; query < item.queries; query += kProducers / kUnits) {
      ptx::copy_async_16(unit_at(to + kVectorBytes, query, unit), queries + static_cast<uint32_t>(query) * stride);
    }
    vectors_.bring(chunk, to);
    if constexpr (Vectors::kStores) {
      ptx::shared_writes_fence();
      ptx::barrier_arrive(&barriers.full[stage_.at]);
    }
    ptx::barrier_arrive_after_copies(&barriers.full[stage_.at]);
    stage_.advance();
  }

  const ScanListsTask& task_;
  const BlockMemory& memory_;
  Vectors vectors_;
  Place<kStages> stage_;
  Place<kItems> slot_;
  uint32_t next_ = 0;
  uint32_t all_items_;
  int64_t code_bytes_;
};

// Multiplies what the producer brings; the first two warpgroups.
template <bool kFirst>
class Multiplier {
 public:
  __device__ Multiplier(const ScanListsTask& task, const BlockMemory& memory)
      : task_(task), memory_(memory), cosine_(task.lists.has_factors()) {}

  __device__ void run() {
    for (int turn = 0;; turn ^= 1) {
      Barriers& barriers = *memory_.barriers;
      ptx::barrier_wait(&barriers.item_full[slot_.at], slot_.parity);
      const ScanItem item = memory_.items[slot_.at];
      __syncwarp();
      if (threadIdx.x % 32 == 0) ptx::barrier_arrive(&barriers.item_empty[slot_.at]);
      slot_.advance();
      if (item.queries == 0) return;
      load_queries(item, turn);
      if (item.queries <= 32) {
        multiply<32, 1>(item, turn);
      } else if (item.queries <= 64) {
        multiply<64, 1>(item, turn);
      } else if (item.queries <= 128) {
        multiply<128, 1>(item, turn);
      } else {
        multiply<64, 3>(item, turn);
      }
    }
  }

 private:
  // Loads the queries that all tiles compare with. The previous item's buffer may still be in use.
  __device__ void load_queries(const ScanItem& item, int turn) {
    const auto place = static_cast<int>(threadIdx.x);
    const bool there = place < item.queries;
    const uint32_t pair = item.first_pair + static_cast<uint32_t>(there ? place : 0);
    if (!kFirst && place < kWideQueries)
      memory_.limits[turn * kWideQueries + place] = there ? task_.operands.limits[pair] : NAN;
    if (cosine_ && place < kWideQueries) {
      const PairBounds& bounds = task_.operands.queries[pair].bounds;
      memory_.gains[turn * kWideQueries + place] = {bounds.gain, bounds.offset};
    }
    ptx::turn_wait(1, kMultipliers);
  }

  // The terms of this thread's two vectors: NaN, below nothing, for one past the last or left out by a filter.
  __device__ void load_terms(const ScanItem& item, int row, float (&terms)[2]) const {
    const int64_t start = task_.lists.offsets[item.list];
    KITH_UNROLL
    for (int i = 0; i < 2; ++i) {
      terms[i] = NAN;
      if (row + 8 * i >= item.rows) continue;
      const uint32_t number = item.first_row + static_cast<uint32_t>(row + 8 * i);
      const int64_t position = start + (kFirst ? item.row_at(number) : number);
      if (task_.kept != nullptr && !is_kept(task_.kept, task_.lists.rows[position])) continue;
      terms[i] = task_.prepared.terms == nullptr ? 0.0f : __ldg(task_.prepared.terms + position);
    }
  }

  __device__ void release(int stage) const {
    if (threadIdx.x % 32 == 0) ptx::barrier_arrive(&memory_.barriers->empty[stage]);
  }

  // All tiles of an item, with kTiles times kQueries queries at once.
  template <int kQueries, int kTiles>
  __device__ void multiply(const ScanItem& item, int turn) {
    const int group = static_cast<int>(threadIdx.x) / kGroupThreads;
    const int lane_row = group * kGroupRows + static_cast<int>(threadIdx.x) % kGroupThreads / 32 * kWarpRows +
                         static_cast<int>(threadIdx.x) % 32 / 4;
    const int chunks = static_cast<int>(task_.operands.stride) / kWideChunkCols;
    ScanMemory queries{};
    queries.queries = task_.operands.queries + item.first_pair;
    queries.limits = memory_.limits + turn * kWideQueries;
    const float2* const gains = memory_.gains + turn * kWideQueries;
    TileEnd<kFirst> end(task_, item, item.queries, queries, memory_.hits);
    for (int first = 0; first < item.rows; first += kTileRows) {
      float terms[2];
      load_terms(item, first + lane_row, terms);
      // Set here, not by a first product that does not add: unwritten registers would stay live between items.
      float sums[kTiles][kQueries / 2] = {};
      int last_stage = 0;
#pragma unroll 1
      for (int chunk = 0; chunk < chunks; ++chunk) {
        ptx::barrier_wait(&memory_.barriers->full[stage_.at], stage_.parity);
        ptx::shared_writes_fence();
        const std::byte* const stage = memory_.ring + stage_.at * kStageBytes;
        const uint64_t a = ptx::operand_descriptor(stage + group * kGroupRows * kRowBytes);
        const uint64_t b = ptx::operand_descriptor(stage + kVectorBytes);
        ptx::warpgroup_fence();
        KITH_UNROLL
        for (int step = 0; step < kSteps; ++step) {
          KITH_UNROLL
          for (int tile = 0; tile < kTiles; ++tile) {
            ptx::multiply_warpgroup(sums[tile], ptx::descriptor_after(a, 32 * step),
                                    ptx::descriptor_after(b, 32 * step + tile * kQueries * kRowBytes), true);
          }
        }
        ptx::warpgroup_commit();
        if (chunk > 0) {
          ptx::warpgroup_wait<1>();  // the chunk before has been read
          release(last_stage);
        }
        last_stage = stage_.at;
        stage_.advance();
      }
      ptx::warpgroup_wait<0>();
      release(last_stage);
      KITH_UNROLL
      for (int tile = 0; tile < kTiles; ++tile) {
        ptx::keep_sums(sums[tile]);
        end_tile(sums[tile], terms, static_cast<uint32_t>(first + lane_row), tile * kQueries, item.queries, gains, end);
      }
    }
    end.finish();
  }

  // 64 queries at a time.
  template <int kCount>
  __device__ void end_tile(const float (&sums)[kCount], const float (&terms)[2], uint32_t row, int first_query,
                           int queries, const float2* gains, TileEnd<kFirst>& end) const {
    constexpr int kPart = kCount < 32 ? kCount : 32;
    KITH_UNROLL
    for (int part = 0; part < kCount; part += kPart) {
      const int first = first_query + 2 * part;
      if (first >= queries) break;
      float values[kPart];
      if (cosine_) {
        KITH_UNROLL
        for (int i = 0; i < kPart; ++i) {
          const float2 gain = gains[first + i / 4 * 8 + 2 * (static_cast<int>(threadIdx.x) % 4) + i % 2];
          values[i] = terms[i % 4 / 2] * fmaf(sums[part + i], gain.x, gain.y);
        }
      } else {
        KITH_UNROLL
        for (int i = 0; i < kPart; ++i) values[i] = sums[part + i] + terms[i % 4 / 2];
      }
      end.template tile<2 * kPart>(values, row, first);
    }
  }

  const ScanListsTask& task_;
  const BlockMemory& memory_;
  Place<kStages> stage_;
  Place<kItems> slot_;
  bool cosine_;
};

template <bool kFirst, typename Vectors>
__global__ void __launch_bounds__(kThreads, 1)
    scan_lists_wide_kernel(const __grid_constant__ ScanListsTask task, int64_t code_bytes) {
  extern __shared__ __align__(1024) std::byte shared[];
  const BlockLayout layout;
  const BlockMemory memory{layout.ring.in(shared),   layout.hits.in(shared),     layout.gains.in(shared),
                           layout.limits.in(shared), layout.barriers.in(shared), layout.items.in(shared)};
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      ptx::barrier_init(&memory.barriers->full[i], (Vectors::kStores ? 2 : 1) * kProducers);
      ptx::barrier_init(&memory.barriers->empty[i], kMultipliers / 32);
    }
    for (int i = 0; i < kItems; ++i) {
      ptx::barrier_init(&memory.barriers->item_full[i], 1);
      ptx::barrier_init(&memory.barriers->item_empty[i], kThreads / 32);  // all warps read an item
    }
    ptx::barrier_init_fence();
  }
  ptx::wait_for_kernel_before();
  __syncthreads();
  if (threadIdx.x >= kMultipliers) {
    ptx::give_registers<kProducerRegisters>();
    Producer<kFirst, Vectors>(task, memory, code_bytes).run();
  } else {
    ptx::take_registers<kMultiplierRegisters>();
    Multiplier<kFirst>(task, memory).run();
  }
}

template <bool kFirst, typename Vectors>
void launch_with(const ScanListsTask& task, cudaStream_t stream) {
  const auto kernel = scan_lists_wide_kernel<kFirst, Vectors>;
  allow_all_shared_memory(kernel);
  launch(kernel, Grid::of(task.multiprocessors, kThreads).with_shared(BlockLayout().bytes).chained(), stream, task,
         task.scanned_bytes());
}

template <bool kFirst>
void launch_pass(const ScanListsTask& task, cudaStream_t stream) {
  const CodeFormat& format = task.lists.codec.format;
  if (task.prepared.halves != nullptr) return launch_with<kFirst, HalvesCopy>(task, stream);
  if (task.prepared.table != nullptr) {
    if (format.part_cols() % 8 == 0) return launch_with<kFirst, CodewordCopy<8>>(task, stream);
    if (format.part_cols() % 4 == 0) return launch_with<kFirst, CodewordCopy<4>>(task, stream);
    return launch_with<kFirst, CodewordCopy<2>>(task, stream);
  }
  launch_with<kFirst, AnyDecode>(task, stream);
}

}  // namespace

void launch_scan_wide(const ScanListsTask& task, bool first, cudaStream_t stream) {
  if (first) return launch_pass<true>(task, stream);
  launch_pass<false>(task, stream);
}

}  // namespace kith
