// Compares rows with the rows of the cells that they probe, on a GPU: for waves over a whole collection
// (cell_steps_cuda.cpp), and for a block of it and rows streamed from disk (cells_on_disk/block_compare_cuda.cpp).
//
// Rows are stored cell by cell as operands of the matrix units. Tiles of queries are gathered and multiplied with the
// rows of their cell; canonical keys are computed for pairs that may matter to either row, and offered to both
// (cell_offers_cuda.hpp). Own cells come first, with limits from the smallest values per part of a cell; after that
// lists are full, and their last neighbours are the limits.
//
// The result does not depend on order, so pieces are enqueued without waiting. A piece that finds more pairs than its
// buffer holds is repeated in smaller pieces, with the tighter limits of that time. If products exclude nothing, keys
// of all pairs are computed.
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

// The rows and lists to compare, on the device.
struct ComparedRows {
  PairKeyRows keys;
  CellOperands operands;
  DeviceWorkingLists lists;           // of the first rows; rows without a list are only offered to others
  const uint32_t* numbers = nullptr;  // the rows' numbers as lists store them; null: the row numbers
  bool by_products = true;            // false: products exclude nothing
};

class CellCompareCuda {
 public:
  CellCompareCuda(std::shared_ptr<const DeviceContext> context, const Resources& resources);

  // Allocates memory for pieces, the largest that fit in this many bytes.
  void take_space(const CellSpaceProblem& problem, int64_t available);
  void free_space() { memory_ = {}; }  // its contents are not kept between calls
  const CellSpacePlan& space() const { return space_; }
  // One counter per cell; free for any use between calls.
  Slot<uint32_t> counters() const { return space_.next; }
  template <typename T>
  T* at(const Slot<T>& slot) const {
    return slot.in(memory_.data());
  }

  // Compares all tiles of a wave, whose slots hold places, with the rows of their cells. `own`: each row with its own
  // cell, every pair once.
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
