// A walk over a graph (walk.hpp) on a GPU, as its kernel gets it: pointers to device memory, and how a block lays out
// its shared memory. No CUDA types, so that any machine can say which walks a GPU takes.
#pragma once

#include <kith/dtype.hpp>

#include "core/divide.hpp"
#include "core/host_device.hpp"
#include "core/result_exit.hpp"
#include "graph/search/graph/walk_cells.hpp"
#include "graph/search/graph/walk_view.hpp"
#include "kernels/distance/canonical.hpp"
#include "rows/device_rows.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace kith {

// Places whose keys are computed before they enter the beam: less for blocks of one warp, of which a processor has
// many.
constexpr int walk_round(int warps) { return warps == 1 ? 128 : 256; }
// Unseen places that a warp puts together before it compares them.
constexpr int walk_staged(int warps) { return warps == 1 ? 64 : 32; }
inline constexpr int64_t kWalkShared = 96 << 10;  // that a block has on every GPU from compute capability 8.0 on
inline constexpr int kWalkMostWarps = 16;         // of a query
inline constexpr int kWalkAheadWarps = 8;         // of one that looks ahead
inline constexpr int kWalkOpened = 16;            // lists of a round, at most
inline constexpr int kWalkLargestStep = 64;       // kWidestStep of walk.hpp
// Whether a walk that ranks cells for itself computes the keys of all at once.
constexpr bool walk_ranks_at_once(int warps) { return warps >= 8; }
// Places that a walk can look at for its results.
inline constexpr int64_t kMostWalkResults = 128;
// Lists that are asked for at a time. (One query with eight warps: 4 lists are as soon as 8.)
constexpr int walk_lists_ahead(int warps) { return warps > 4 ? 8 : 4; }
// Lists that were compared ahead and are kept, a power of two: 16 KB of them, or 8.
constexpr int walk_lists_kept(int64_t degree, int warps) {
  return walk_lists_ahead(warps) * (degree <= 32 ? 8 : degree <= 64 ? 4 : 2);
}
inline constexpr int kWalkAheadBeam = 128;  // widest beam of such a walk

// Which places a walk remembers to have seen: a hash table that looks at kProbes slots from a place's own on, and then
// forgets what is in the first of them (seen_places.hpp). What is forgotten seldom matters, but a place that is in the
// beam and comes again makes a step twice as long.
//
// Where a block has several warps a slot is the place itself, taken by compare and swap, so that of two warps that come
// to a place together one compares it. A single warp, of which a processor has many, has slots of two bytes: a place
// times an odd number, modulo a power of two above all places, is another number for every place; its upper bits are
// the slot, and the lower ones, which are kept there with the distance from it, tell the place. No place is taken for
// another.
struct SeenTable {
  int slot_bits = 0;
  int tag_bits = 0;
  bool whole = false;  // slots of four bytes

  static constexpr int kProbes = 4;
  static constexpr int kMostTagBits = 13;  // beside the distance and a value for nothing
  static constexpr int kFewestSlotBits = 11;
  static constexpr int kMostSlotBits = 13;

  // `places`: of the graph. Sixteen warps have a multiprocessor's memory to themselves: a larger table, which hardly
  // ever forgets.
  static SeenTable of(int64_t places, int64_t beam, int64_t degree, int warps) {
    const bool whole = warps > 1;
    const int more = whole ? (warps == kWalkMostWarps ? 2 : 1) : 0;
    const int likely = std::bit_width(static_cast<uint64_t>(beam * degree)) + more;
    const int bits = std::bit_width(static_cast<uint64_t>(places));
    SeenTable table;
    table.whole = whole;
    table.slot_bits = std::clamp(likely, kFewestSlotBits, warps == kWalkMostWarps ? kMostSlotBits + 1 : kMostSlotBits);
    if (!whole) table.slot_bits = std::max(table.slot_bits, bits - kMostTagBits);
    table.tag_bits = whole ? 32 - table.slot_bits : std::max(bits - table.slot_bits, 0);
    return table;
  }
  KITH_HOST_DEVICE int64_t bytes() const { return int64_t{whole ? 4 : 2} << slot_bits; }

  KITH_HOST_DEVICE uint32_t mixed(uint32_t place) const {
    const uint32_t product = place * 0x9E3779B1U;
    return whole ? product : product & ((1U << (slot_bits + tag_bits)) - 1U);
  }
  KITH_HOST_DEVICE uint32_t slot(uint32_t mixed_place) const { return mixed_place >> tag_bits; }
  KITH_HOST_DEVICE uint32_t slot_after(uint32_t slot, int probe) const {
    return (slot + static_cast<uint32_t>(probe)) & ((1U << slot_bits) - 1U);
  }
  // What a slot of two bytes holds.
  KITH_HOST_DEVICE uint16_t tag(uint32_t mixed_place, int probe) const {
    const uint32_t low = mixed_place & ((1U << tag_bits) - 1U);
    return static_cast<uint16_t>(low * kProbes + static_cast<uint32_t>(probe));
  }
};

// Offsets in the shared memory of the block that walks for one query.
struct WalkLayout {
  WalkLayout() = default;
  // `stride`: columns of a code.
  WalkLayout(int64_t beam_places, int64_t kept_places, int64_t stride, int warps, const SeenTable& table)
      : beam(take(2 * beam_places * 8)),
        kept(take(2 * kept_places * 8)),
        cells(take(2 * kNearCells * 8)),
        fresh(take(walk_round(warps) * 8)),
        fresh_kept(take(kept_places > 0 ? walk_round(warps) * 8 : 0)),
        ranks(take(walk_round(warps) * 4)),
        staged(take(int64_t{warps} * (walk_staged(warps) + kWalkOpened) * 4)),
        cell_keys(take(walk_ranks_at_once(warps) ? kMostWalkCells * 4 : 0)),
        query(take(stride * 2)),
        seen(take(table.bytes())) {}

  // Room for lists that are compared ahead.
  void add_ahead(int64_t degree, int warps) {
    ahead = take(walk_lists_kept(degree, warps) * round_up(degree, 32) * 8);
    ahead_counts = take(walk_lists_kept(degree, warps) * 8);
  }

  int64_t bytes = 0;
  int64_t beam = 0;  // twice: entries are moved from one to the other
  int64_t kept = 0;
  int64_t cells = 0;
  int64_t fresh = 0;  // entries that want to enter the beam
  int64_t fresh_kept = 0;
  int64_t ranks = 0;      // of the fresh entries
  int64_t staged = 0;     // of each warp: places to be compared, and those that are opened
  int64_t cell_keys = 0;  // of all cells, where queries are few
  int64_t query = 0;      // bytes or words
  int64_t seen = 0;
  int64_t ahead = 0;
  int64_t ahead_counts = 0;  // of entries of these lists, and their least keys

 private:
  int64_t take(int64_t size) {
    const int64_t at = bytes;
    bytes = round_up(bytes + size, 16);
    return at;
  }
};

// What a walk writes where its keys are the vectors' squared distances: no second look (index/graph_compare_cuda.hpp)
// follows. Nothing is filtered.
struct WalkResults {
  int64_t* ids = nullptr;  // queries x k, padded; null: the places are written
  float* distances = nullptr;
  uint8_t* failed = nullptr;  // of each query: `after_few` where it has found fewer than fewest_rows, else 0
  uint8_t after_few = 0;
  int64_t k = 0;
  int64_t candidates = 0;  // rows that are looked at: those at the first places, until there are so many
  int64_t fewest_rows = 0;
  KeyKind kind = KeyKind::l2;
  ResultExit exit = ResultExit(Metric::l2);
};

struct WalkTaskCuda {
  // The graph (WalkView). Codes have `stride` bytes, a multiple of 16; packed ones, of places and of the tail, half of
  // it (kernels/distance/nibble_keys_cpu.hpp).
  WalkKind kind = WalkKind::squares;
  const int8_t* codes = nullptr;
  const int8_t* tail = nullptr;
  const int8_t* centres = nullptr;
  int64_t places = 0;
  int64_t tail_places = 0;
  int64_t stride = 0;
  bool packed = false;
  const uint32_t* edges = nullptr;
  int degree = 0;
  int cells = 0;
  const uint32_t* entry_offsets = nullptr;
  const uint32_t* entries = nullptr;
  const uint32_t* centre_norms = nullptr;  // squared
  PlaceRows rows;
  // How queries are coded (walk_coder.hpp).
  const float* offsets = nullptr;
  double inverse_step = 1;
  double widest = 127;
  bool unit_length = false;
  bool plain = false;  // bytes of queries, u8 less 128, are their codes
  // Queries of any dtype, and what is wanted.
  DeviceRowsView queries;
  int64_t cols = 0;
  int beam = 0;
  int width = 0;
  int kept = 0;                         // as WalkWish has it
  const uint64_t* kept_bits = nullptr;  // of rows; null where there is no filter
  const uint32_t* hidden = nullptr;     // of each query a place that its walk does not see; null: none
  // The nearest cells of each query, kNearCells each, found by a kernel before, for many queries; null: walks find
  // them. kNotRanked: the walk does. Where cells are ranked in slices, by more blocks, it is those of each slice, as
  // (key, cell) packed, padded; padding first: the walk ranks.
  uint32_t* near_cells = nullptr;
  int rank_slices = 1;
  // What comes out: for each query the first `most` places found, how many there are in all, and the first query with a
  // value that is not finite, for which nothing is found: the least such number is written, where it is less.
  int64_t most = 0;
  uint32_t* found = nullptr;
  uint32_t* found_keys = nullptr;  // of these places, in the order of ordered_key(); null: nobody asks
  uint32_t* found_count = nullptr;
  uint32_t* bad_query = nullptr;
  WalkResults results;
  SeenTable seen;
  WalkLayout layout;
  int ahead = 0;  // lists that are asked for at a time, by walks that compare them ahead
};

inline constexpr uint32_t kNotRanked = 0xFFFFFFFFU;
// From so many queries on a kernel of its own ranks cells, sixteen queries at a time: a walk reads all centres for
// itself.
inline constexpr int64_t kFewestRanked = 512;
// Up to so many it ranks cells in kRankSlices slices: the device has room for more blocks.
inline constexpr int64_t kMostSliced = 2048;
inline constexpr int kRankSlices = 8;
inline int rank_slices(int64_t queries) { return queries <= kMostSliced ? kRankSlices : 1; }
// Words of task.near_cells for a query.
inline int64_t ranked_words(int slices) { return slices == 1 ? kNearCells : 2 * slices * kNearCells; }
// Columns of codes that it takes.
inline constexpr int64_t kMostRankedStride = 2048;

// How a query is walked for: by so many warps, and ahead (walk_ahead_cuda.hpp) or not.
struct WalkForm {
  int warps = 1;
  bool ahead = false;

  SeenTable seen(const WalkTaskCuda& task) const {
    // A walk ahead remembers only what was near enough for the beam.
    constexpr int kFewer = 4;
    return SeenTable::of(task.places, task.beam, ahead ? task.degree / kFewer : task.degree, warps);
  }
  WalkLayout layout(const WalkTaskCuda& task) const {
    WalkLayout layout(task.beam, task.kept, task.stride, warps, seen(task));
    if (ahead) layout.add_ahead(task.degree, warps);
    return layout;
  }
  // Whether such walks can be made.
  bool suits(const WalkTaskCuda& task) const {
    if (layout(task).bytes > kWalkShared) return false;
    if (!ahead) return true;
    return warps >= 2 && warps <= kWalkAheadWarps && task.kept_bits == nullptr && task.beam <= kWalkAheadBeam &&
           task.width <= walk_lists_ahead(warps) &&
           int64_t{task.width} * round_up(task.degree, 32) <= walk_round(warps);
  }
};

// As many warps as keep the device busy: a pure function of the number of queries, what is asked for, and the device.
// (1,000 queries on an H200, beam 48, ahead: 0.29 ms with two warps each, 0.38 with four; 0.33 with two that do not
// look ahead.) A step whose lists give sixteen warps enough to compare does not look ahead: to go over what was
// compared is one warp's work, and takes longer than to wait for memory. (One query, lists of 32, beam 40, where eight
// warps look ahead and where sixteen do not, in us of walk_parts_cuda_bench: 84 and 81 with width 2, 76 and 61 with 4,
// 75 and 56 with 8; a hundred queries: 110 and 95, 96 and 72, 95 and 67.)
inline WalkForm walk_form(const WalkTaskCuda& task, int multiprocessors) {
  constexpr int64_t kWarpsTogether = 16;  // of a multiprocessor, about
  constexpr int64_t kEnough = 64;         // edges of a step
  const int64_t each = int64_t{multiprocessors} * kWarpsTogether / std::max<int64_t>(1, task.queries.count);
  const int warps = each >= kWalkAheadWarps ? kWalkAheadWarps : each >= 4 ? 4 : each >= 2 ? 2 : 1;
  const bool most = each >= kWalkMostWarps && WalkForm{kWalkMostWarps, false}.suits(task);
  if (most && int64_t{task.width} * task.degree >= kEnough) return {kWalkMostWarps, false};
  if (const WalkForm ahead{warps, true}; ahead.suits(task)) return ahead;
  return {most ? kWalkMostWarps : warps, false};
}

// Whether a block has room for such a walk, with one warp or with eight.
inline bool suits_walk_cuda(int64_t places, int64_t beam, int64_t kept, int64_t degree, int64_t stride) {
  const auto fits = [&](int warps) {
    const SeenTable table = SeenTable::of(places, beam, degree, warps);
    return WalkLayout(beam, kept, stride, kWalkAheadWarps, table).bytes <= kWalkShared;
  };
  return fits(1) && fits(kWalkAheadWarps);
}

}  // namespace kith
