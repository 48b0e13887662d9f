// The vectors of an item as a warpgroup takes them, tiles of 64: where their codes lie, what is held of a tile ahead of its
// use, and the copies that are made of stored vectors in shared memory.
#pragma once

#include "cuda/ptx_hopper.hpp"
#include "ivf/scan/scan_decoders_cuda.hpp"
#include "ivf/scan/scan_item_cuda.hpp"
#include "ivf/scan/warpgroup_operands_cuda.hpp"
#include "rows/kept_rows_cuda.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace kith {

inline constexpr int kStagedBytes = 32 << 10;  // of a warpgroup: one tile of f32, two of f16
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

  // Of the next item: how many of its tiles it finds asked for.
  __device__ int ahead() const { return ahead_; }
  __device__ void ask_ahead(const uint8_t* from, uint32_t bytes) {
    ask(from, bytes);
    ++ahead_;
  }
  __device__ void begin_item() { ahead_ = 0; }
  // An item that nobody scans: what was asked for is waited for and left.
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

// Of a tile, ahead of its use.
template <typename Decoder>
struct HeldTile {
  HeldCodes<Decoder, 2> codes;
  float terms[2];  // NaN for what a filter leaves out
};

// Where the tiles of an item's codes lie.
template <bool kFirst>
class ItemCodes {
 public:
  __device__ ItemCodes(const ScanListsTask& task, const ScanItem& item, int64_t code_bytes)
      : position_(task.lists.offsets[item.list] + (kFirst ? task.cut.first_row_at(item.first_row) : item.first_row)),
        codes_(task.lists.codes + position_ * code_bytes),
        rows_(item.rows),
        apart_(static_cast<uint32_t>(kGroupRows * (kFirst ? task.cut.sample_every : 1))),
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

  // Past the last tile it is the last one again, which nobody will use. Codes past the last are the last one's.
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

// Asks for the first tiles of the item after this one, as many as there are places for.
template <bool kFirst, typename Staged>
__device__ inline void ask_next_item(const ScanListsTask& task, const ScanItem& next, int64_t code_bytes,
                                     Staged& staged) {
  const int tile = static_cast<int>(threadIdx.x) / kGroupThreads + staged.ahead() * kGroups;
  if (next.queries == 0 || tile * kGroupRows >= next.rows) return;
  const ItemCodes<kFirst> codes(task, next, code_bytes);
  staged.ask_ahead(codes.tile(tile), codes.bytes(tile));
}

}  // namespace kith
