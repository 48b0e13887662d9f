// What waves on a GPU keep beside the rows and their lists, and how it lies in memory. Pure, so that any machine can
// plan.
//
// Some of it follows from the rows: operands, an inbox of some offers for each. The rest is for pieces of a wave, which
// are as small as memory wants: results do not depend on them.
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
  int64_t tiles = 0;  // of a cell, the first so many
  int rows_per_part = 8;

  constexpr int64_t stride() const { return tiles * (kOperandTile / rows_per_part); }
};
constexpr CellParts cell_parts(int64_t length) {
  if (length < 32) return {8, 8};
  return length < 512 ? CellParts{16, 2} : CellParts{};
}

// What the kernels have room for: offers that wait for a row, and parts of a cell.
inline constexpr int64_t kMostInboxSlots = 256;
inline constexpr int64_t kMostCellParts = 1024;
static_assert(cell_parts(1).stride() <= kMostCellParts && cell_parts(100).stride() <= kMostCellParts);

// Operands in the order of cells.
struct CellOperandSpace : WorkspaceLayout {
  using Value = uint32_t;  // the bits of a float where operands are halves, of an int32_t where they are bytes

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

inline constexpr int64_t kCellPiecesAhead = 8;  // pieces that are enqueued before anybody waits
inline constexpr int64_t kItemTiles = 32;       // of rows, in a product of a tile of slots, at most

// An offer that found its row's inbox full.
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
  // With pieces made smaller by `shift` halvings.
  CellSpacePlan(const CellSpaceProblem& problem, int shift);

  int64_t pair_capacity = 0;
  int64_t spill_capacity = 0;
  int64_t inbox_slots = 0;
  int64_t tiles = 0;      // of slots, in a piece
  int64_t own_tiles = 0;  // the same in the wave of the own cells
  int64_t slots = 0;      // of a wave, about

  Slot<uint64_t> inboxes;
  Slot<uint32_t> inbox_counts;
  Slot<uint64_t> pairs;
  Slot<SpilledOffer> spilled[2];
  Slot<uint32_t> spilled_count, pair_counts, spill_counts;
  Slot<std::byte> queries;
  Slot<float> parts;
  Slot<CellOperandSpace::Value> slot_limits;  // two for each slot
  Slot<uint32_t> next;
  Slot<ProductItem> items;
};

// The largest pieces that fit, or the smallest there are.
CellSpacePlan plan_cell_space(const CellSpaceProblem& problem, int64_t available);

}  // namespace kith
