#include "graph/build/cells/cell_workspace_cuda.hpp"

#include "core/host_array.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kMostPairs = int64_t{1} << 26;
constexpr int64_t kFewestPairs = int64_t{1} << 16;  // a tile of slots with a tile of rows has half as many
constexpr int64_t kPairsPerRow = 16;
constexpr int64_t kQueryBytes = int64_t{640} << 20;
constexpr int64_t kPartBytes = int64_t{256} << 20;
constexpr int64_t kMostSlots = int64_t{1} << 28;
constexpr int kMostShift = 12;
constexpr int kFewShifts = 2;     // that are tried before inboxes are made smaller
constexpr int kMostHalvings = 2;  // of inboxes
constexpr int64_t kFewestSlots = 8;

int64_t slots_of_inbox(int64_t length) {
  int64_t slots = 32;
  while (slots < kMostInboxSlots && slots < length + length / 4) slots *= 2;
  return slots;
}

}  // namespace

CellSpacePlan::CellSpacePlan(const CellSpaceProblem& problem, int shift) {
  pair_capacity =
      std::max(std::clamp(kPairsPerRow * problem.rows, 4 * kFewestPairs, kMostPairs) >> shift, kFewestPairs);
  spill_capacity = std::max(pair_capacity / 8, 2 * kFewestPairs);
  inbox_slots = std::max<int64_t>(slots_of_inbox(problem.length) >> problem.inbox_halvings, kFewestSlots);
  const int64_t tile_bytes = kQueryTile * problem.chunks * kChunkBytes;
  tiles = std::clamp<int64_t>((kQueryBytes >> shift) / tile_bytes, 1, std::max<int64_t>(pair_capacity / kQueryTile, 1));
  const int64_t tile_parts = kQueryTile * cell_parts(problem.length).stride();
  own_tiles =
      tile_parts == 0 ? tiles : std::clamp<int64_t>((kPartBytes >> shift) / array_bytes<float>(tile_parts), 1, tiles);
  slots = std::max(kMostSlots >> shift, problem.rows);

  inboxes = take<uint64_t>(problem.rows, inbox_slots);
  inbox_counts = take<uint32_t>(problem.rows);
  pairs = take<uint64_t>(pair_capacity);
  for (Slot<SpilledOffer>& list : spilled) list = take<SpilledOffer>(spill_capacity);
  spilled_count = take<uint32_t>(1);
  pair_counts = take<uint32_t>(kCellPiecesAhead);
  spill_counts = take<uint32_t>(kCellPiecesAhead);
  queries = take<std::byte>(tiles, tile_bytes);
  parts = take<float>(own_tiles, tile_parts);
  slot_limits = take<CellOperandSpace::Value>(tiles * kQueryTile, 2);
  next = take<uint32_t>(problem.cells);
  // Products of the parts of a cell, one for each tile of slots, and of all its rows.
  const int64_t tile_items = 1 + divide_up(divide_up(problem.largest_cell, kOperandTile), kItemTiles);
  items = take<ProductItem>(kCellPiecesAhead * tiles, tile_items);
}

CellSpacePlan plan_cell_space(const CellSpaceProblem& problem, int64_t available) {
  // Small inboxes before small pieces: what does not fit an inbox is brought in later.
  for (CellSpaceProblem smaller = problem;; ++smaller.inbox_halvings) {
    const bool last = smaller.inbox_halvings == kMostHalvings;
    for (int shift = 0; shift <= (last ? kMostShift : kFewShifts); ++shift) {
      const CellSpacePlan plan(smaller, shift);
      if (plan.bytes <= available || (last && shift == kMostShift)) return plan;
    }
  }
}

}  // namespace kith
