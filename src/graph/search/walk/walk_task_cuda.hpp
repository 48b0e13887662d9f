// The kernel argument of a walk (walk.hpp) on a GPU: pointers to device memory, and the layout of a block's shared
// memory. No CUDA types, so that any machine can decide which walks a GPU supports.
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
// Unseen places that a warp collects before it compares them.
constexpr int walk_staged(int warps) { return warps == 1 ? 64 : 32; }
inline constexpr int64_t kWalkShared = 96 << 10;  // per block on every GPU from compute capability 8.0 on
inline constexpr int kWalkMostWarps = 16;         // per query
inline constexpr int kWalkAheadWarps = 8;         // per query, for walks that compare ahead
inline constexpr int kWalkOpened = 16;            // most lists per round
inline constexpr int kWalkLargestStep = 64;       // kWidestStep of walk.hpp
// Whether a walk that ranks cells itself computes all their keys at once.
constexpr bool walk_ranks_at_once(int warps) { return warps >= 8; }
// Most places that a walk can examine for its results.
inline constexpr int64_t kMostWalkResults = 128;
// Lists requested at a time. (One query with eight warps: 4 lists are as fast as 8.)
constexpr int walk_lists_ahead(int warps) { return warps > 4 ? 8 : 4; }
// How many lists compared ahead are kept: a power of two; 16 KB of lists, or 8.
constexpr int walk_lists_kept(int64_t degree, int warps) {
  return walk_lists_ahead(warps) * (degree <= 32 ? 8 : degree <= 64 ? 4 : 2);
}
inline constexpr int kWalkAheadBeam = 128;  // widest beam of a walk that compares ahead

// The table of seen places: a hash table that probes kProbes slots, and if all are taken overwrites the first
// (seen_places.hpp). A forgotten place seldom matters, but one that is still in the beam and comes again makes a step
// twice as long.
//
// With several warps per block a slot holds the place itself and is claimed by compare-and-swap, so that of two warps
// that reach a place together only one compares it. Blocks of a single warp, of which a multiprocessor has many, use
// two-byte slots: a place times an odd number, modulo a power of two above all places, is unique. Its upper bits
// select the slot; the lower ones, stored there with the distance from that slot, identify the place. So no place is
// mistaken for another.
struct SeenTable {
  int slot_bits = 0;
  int tag_bits = 0;
  bool whole = false;  // four-byte slots

  static constexpr int kProbes = 4;
  static constexpr int kMostTagBits = 13;  // besides the distance and a value for empty slots
  static constexpr int kFewestSlotBits = 11;
  static constexpr int kMostSlotBits = 13;

  // `places`: of the graph. A block of sixteen warps has the multiprocessor's shared memory to itself, which allows a
  // table that hardly ever forgets.
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
  // The content of a two-byte slot.
  KITH_HOST_DEVICE uint16_t tag(uint32_t mixed_place, int probe) const {
    const uint32_t low = mixed_place & ((1U << tag_bits) - 1U);
    return static_cast<uint16_t>(low * kProbes + static_cast<uint32_t>(probe));
  }
};

// Offsets in the shared memory of a block, which walks for one query.
struct WalkLayout {
  WalkLayout() = default;
  // `stride`: columns of a code, padded.
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

  // Space for lists compared ahead.
  void add_ahead(int64_t degree, int warps) {
    ahead = take(walk_lists_kept(degree, warps) * round_up(degree, 32) * 8);
    ahead_counts = take(walk_lists_kept(degree, warps) * 8);
  }

  int64_t bytes = 0;
  int64_t beam = 0;  // double-buffered: an update moves entries from one half to the other
  int64_t kept = 0;
  int64_t cells = 0;
  int64_t fresh = 0;  // candidate entries for the beam
  int64_t fresh_kept = 0;
  int64_t ranks = 0;      // of the fresh entries
  int64_t staged = 0;     // per warp: places to compare, and opened places
  int64_t cell_keys = 0;  // of all cells, for few queries
  int64_t query = 0;      // its code, bytes or words
  int64_t seen = 0;
  int64_t ahead = 0;
  int64_t ahead_counts = 0;  // entries per list, and their smallest keys

 private:
  int64_t take(int64_t size) {
    const int64_t at = bytes;
    bytes = round_up(bytes + size, 16);
    return at;
  }
};

// The output of a walk whose keys are the vectors' squared distances, so that no re-ranking
// (index/graph_compare_cuda.hpp) follows. Without filters.
struct WalkResults {
  int64_t* ids = nullptr;  // queries x k, padded; null: places are written instead
  float* distances = nullptr;
  uint8_t* failed = nullptr;  // per query: `after_few` if fewer than fewest_rows were found, else 0
  uint8_t after_few = 0;
  int64_t k = 0;
  int64_t candidates = 0;  // rows to examine: those at the first places, until there are this many
  int64_t fewest_rows = 0;
  KeyKind kind = KeyKind::l2;
  ResultExit exit = ResultExit(Metric::l2);
};

struct WalkTaskCuda {
  // The graph (WalkView). Codes have `stride` bytes, a multiple of 16; packed codes of places and of the tail have half
  // (kernels/distance/nibble_keys_cpu.hpp).
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
  bool plain = false;  // the queries' bytes (u8 minus 128) are their codes
  // Queries of any dtype, and the search parameters.
  DeviceRowsView queries;
  int64_t cols = 0;
  int beam = 0;
  int width = 0;
  int kept = 0;                         // as WalkParams has it
  const uint64_t* kept_bits = nullptr;  // of rows; null where there is no filter
  const uint32_t* hidden = nullptr;     // per query: a place that its walk skips; null: none
  // The kNearCells nearest cells of each query, found by an earlier kernel if there are many queries; null, or
  // kNotRanked for a query: walks find them. If cells are ranked in slices, by more blocks, there are those of each
  // slice, packed as (key, cell) and padded; if padding comes first the walk ranks.
  uint32_t* near_cells = nullptr;
  int rank_slices = 1;
  // Output: for each query the first `most` places, and the number of all found. Queries with a value that is not
  // finite find nothing; the smallest such query number is written if it is below the present value.
  int64_t most = 0;
  uint32_t* found = nullptr;
  uint32_t* found_keys = nullptr;  // keys of these places, as ordered_key(); null: not wanted
  uint32_t* found_count = nullptr;
  uint32_t* bad_query = nullptr;
  WalkResults results;
  SeenTable seen;
  WalkLayout layout;
  int ahead = 0;  // lists requested at a time by walks that compare ahead
};

inline constexpr uint32_t kNotRanked = 0xFFFFFFFFU;
// From this many queries on, a separate kernel ranks cells for sixteen queries at a time; a walk would read all centres
// for its one query.
inline constexpr int64_t kFewestRanked = 512;
// Up to this many it ranks cells in kRankSlices slices, to occupy more of the device.
inline constexpr int64_t kMostSliced = 2048;
inline constexpr int kRankSlices = 8;
inline int rank_slices(int64_t queries) { return queries <= kMostSliced ? kRankSlices : 1; }
// Words of task.near_cells per query.
inline int64_t ranked_words(int slices) { return slices == 1 ? kNearCells : 2 * slices * kNearCells; }
// Columns of codes that the kernel supports.
inline constexpr int64_t kMostRankedStride = 2048;

// How a walk runs: the number of warps, and whether it compares ahead (walk_ahead_cuda.hpp).
struct WalkForm {
  int warps = 1;
  bool ahead = false;

  SeenTable seen(const WalkTaskCuda& task) const {
    // A walk that compares ahead remembers only places near enough for the beam.
    constexpr int kFewer = 4;
    return SeenTable::of(task.places, task.beam, ahead ? task.degree / kFewer : task.degree, warps);
  }
  WalkLayout layout(const WalkTaskCuda& task) const {
    WalkLayout layout(task.beam, task.kept, task.stride, warps, seen(task));
    if (ahead) layout.add_ahead(task.degree, warps);
    return layout;
  }
  // Whether the device supports these walks.
  bool suits(const WalkTaskCuda& task) const {
    if (layout(task).bytes > kWalkShared) return false;
    if (!ahead) return true;
    return warps >= 2 && warps <= kWalkAheadWarps && task.kept_bits == nullptr && task.beam <= kWalkAheadBeam &&
           task.width <= walk_lists_ahead(warps) &&
           int64_t{task.width} * round_up(task.degree, 32) <= walk_round(warps);
  }
};

// Chooses the number of warps that keeps the device busy: a pure function of the number of queries, the parameters and
// the device. (1,000 queries on an H200, beam 48, comparing ahead: 0.29 ms with two warps each, 0.38 with four; 0.33
// with two that do not compare ahead.) Steps with enough edges for sixteen warps do not compare ahead: going over the
// compared lists is one warp's work and takes longer than waiting for memory. (One query, lists of 32, beam 40, eight
// warps comparing ahead against sixteen that do not, in us by walk_parts_cuda_bench: 84 and 81 with width 2, 76 and 61
// with 4, 75 and 56 with 8; a hundred queries: 110 and 95, 96 and 72, 95 and 67.)
inline WalkForm walk_form(const WalkTaskCuda& task, int multiprocessors) {
  constexpr int64_t kWarpsTogether = 16;  // per multiprocessor, about
  constexpr int64_t kEnough = 64;         // edges per step
  const int64_t each = int64_t{multiprocessors} * kWarpsTogether / std::max<int64_t>(1, task.queries.count);
  const int warps = each >= kWalkAheadWarps ? kWalkAheadWarps : each >= 4 ? 4 : each >= 2 ? 2 : 1;
  const bool most = each >= kWalkMostWarps && WalkForm{kWalkMostWarps, false}.suits(task);
  if (most && int64_t{task.width} * task.degree >= kEnough) return {kWalkMostWarps, false};
  if (const WalkForm ahead{warps, true}; ahead.suits(task)) return ahead;
  return {most ? kWalkMostWarps : warps, false};
}

// Whether a block's shared memory suffices for such a walk, with one warp or with eight.
inline bool suits_walk_cuda(int64_t places, int64_t beam, int64_t kept, int64_t degree, int64_t stride) {
  const auto fits = [&](int warps) {
    const SeenTable table = SeenTable::of(places, beam, degree, warps);
    return WalkLayout(beam, kept, stride, kWalkAheadWarps, table).bytes <= kWalkShared;
  };
  return fits(1) && fits(kWalkAheadWarps);
}

}  // namespace kith
