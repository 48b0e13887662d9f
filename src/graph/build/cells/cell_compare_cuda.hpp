// Rows that probe cells, compared on a GPU with the rows of these cells: for waves over a whole collection
// (cell_steps_cuda.cpp) and for a block of one and the rows that pass by (cells_on_disk/block_compare_cuda.cpp).
//
// Rows lie cell by cell as operands of the matrix units. Tiles of queries are gathered and multiplied with the rows of
// their cell; pairs that may matter to either row get canonical keys and are offered to both (cell_offers_cuda.hpp). Own
// cells come first, with limits from the least values of parts; then lists are full, and their last neighbours are the
// limits.
//
// Nothing depends on order, so that pieces are enqueued without waiting. Where a piece found more pairs than there is
// room for, it is done again in as many pieces as that takes, with the limits that lists have by then. Where products
// say nothing, all pairs get keys.
#pragma once

#include <kith/resources.hpp>

#include "core/parallel_for.hpp"
#include "cuda/device_array.hpp"
#include "graph/build/cells/cell_items.hpp"
#include "graph/build/cells/cell_offers_cuda.hpp"
#include "graph/build/cells/cell_operands_cuda.hpp"
#include "graph/build/cells/cell_workspace_cuda.hpp"
#include "graph/lists/pairs/pair_key_rows.hpp"
#include "graph/lists/working_lists_cuda.hpp"
#include "kernels/matrix/product_cuda.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace kith {

// What is compared, on the device.
struct ComparedRows {
  PairKeyRows keys;
  CellOperands operands;
  DeviceWorkingLists lists;           // of the first so many rows; others are looked at alone
  const uint32_t* numbers = nullptr;  // the rows' numbers in lists; null: their own
  bool by_products = true;            // else products say nothing
};

class CellCompareCuda {
 public:
  CellCompareCuda(std::shared_ptr<const DeviceContext> context, const Resources& resources);

  // Takes memory for pieces, the largest that fit in so many bytes.
  void take_space(const CellSpaceProblem& problem, int64_t available);
  void free_space() { memory_ = {}; }  // which holds nothing between calls
  const CellSpacePlan& space() const { return space_; }
  // One counter per cell; free for any use between calls.
  Slot<uint32_t> counters() const { return space_.next; }
  template <typename T>
  T* at(const Slot<T>& slot) const {
    return slot.in(memory_.data());
  }

  // All tiles of a wave, whose slots hold places, with the rows of their cells. `own`: each row with those of its own
  // cell, from one side.
  void compare(const ComparedRows& rows, const CellLayout& layout, const WaveTiles& wave, const uint32_t* slots,
               bool own, ProgressMeter& meter);

 private:
  class Wave;

  std::shared_ptr<const DeviceContext> context_;
  const Resources resources_;
  const ProductEngine engine_;
  CellSpacePlan space_;
  DeviceBuffer memory_;
  double pairs_per_slot_ = 10;
};

}  // namespace kith
