// The workspace of waves on a GPU, besides rows and lists, and its layout. Pure functions, so that any machine can
// plan.
//
// Operands and inboxes are sized by the rows. The rest is for pieces of a wave, which get as small as memory requires:
// results do not depend on their size.
#pragma once

#include <kith/view.hpp>

#include "cuda/workspace_layout.hpp"
#include "graph/build/cells/cell_params.hpp"
#include "kernels/matrix/operand_bounds.hpp"
#include "kernels/matrix/operand_layout.hpp"
#include "kernels/matrix/product_plan.hpp"

#include <cstdint>

namespace kith {

// Parts of a cell whose least values limit what is looked at first: lists of `length`, and the row itself, must fit the
// number of parts well. None for long lists: there all is looked at.
struct CellParts {
  int64_t tiles = 0;  // the first tiles of a cell
  int rows_per_part = 8;

  constexpr int64_t stride() const { return tiles * (kOperandTile / rows_per_part); }
};
constexpr CellParts cell_parts(int64_t length) {
  if (length < 32) return {8, 8};
  return length < 512 ? CellParts{16, 2} : CellParts{};
}

// Fixed capacities of the kernels: offers per inbox, and parts per cell.
inline constexpr int64_t kMostInboxSlots = 256;
inline constexpr int64_t kMostCellParts = 1024;
static_assert(cell_parts(1).stride() <= kMostCellParts && cell_parts(100).stride() <= kMostCellParts);

// Operands, cell by cell.
struct CellOperandSpace : WorkspaceLayout {
  using Value = uint32_t;  // the bits of a float for half operands, of an int32_t for byte operands

  CellOperandSpace(int64_t cols, int64_t chunks, int64_t places)
      : operands(take<std::byte>(operand_bytes(places, chunks))),
        terms(take<Value>(padded(places))),
        pair_terms(take<Value>(padded(places), 2)),
        own(take<Value>(padded(places))),
        norms(take<float>(padded(places))),
        limits(take<Value>(padded(places))),
        bounds(take<BaseBounds>(1)),
        centre(take<float>(cols)) {}

  Slot<std::byte> operands;
  Slot<Value> terms, pair_terms, own;
  Slot<float> norms;
  Slot<Value> limits;
  Slot<BaseBounds> bounds;
  Slot<float> centre;

 private:
  static int64_t padded(int64_t places) { return operand_tiles(places) * kOperandTile; }
};

inline constexpr int64_t kCellPiecesAhead = 8;  // pieces enqueued before the host waits
inline constexpr int64_t kItemTiles = 32;       // most tiles of rows per product of a tile of slots

// An offer that did not fit its row's inbox.
struct SpilledOffer {
  uint64_t neighbor;
  uint32_t row;
  uint32_t unused;
};

struct CellSpaceProblem {
  int64_t rows = 0;
  int64_t length = 0;  // of lists
  int64_t chunks = 0;  // of an operand
  int64_t cells = 0;
  int64_t largest_cell = 1;
  int inbox_halvings = 0;
};

struct CellSpacePlan : WorkspaceLayout {
  CellSpacePlan() = default;
  // With pieces halved `shift` times.
  CellSpacePlan(const CellSpaceProblem& problem, int shift);

  int64_t pair_capacity = 0;
  int64_t spill_capacity = 0;
  int64_t inbox_slots = 0;
  int64_t tiles = 0;      // tiles of slots per piece
  int64_t own_tiles = 0;  // the same for the wave of own cells
  int64_t slots = 0;      // slots per wave, about

  Slot<uint64_t> inboxes;
  Slot<uint32_t> inbox_counts;
  Slot<uint64_t> pairs;
  Slot<SpilledOffer> spilled[2];
  Slot<uint32_t> spilled_count, pair_counts, spill_counts;
  Slot<std::byte> queries;
  Slot<float> parts;
  Slot<CellOperandSpace::Value> slot_limits;  // two per slot
  Slot<uint32_t> next;
  Slot<ProductItem> items;
};

// With the largest pieces that fit, or else the smallest.
CellSpacePlan plan_cell_space(const CellSpaceProblem& problem, int64_t available);

}  // namespace kith
