// Compares a block of rows, which is in memory with its lists, with all rows: first with itself, as in memory, then
// with all others, which pass by in chunks, those that lie near on the curve of cells first.
//
// The block owns its lists and is done after it: pairs of two blocks are compared once for each, and nothing has to be
// kept for the others. Blocks do not depend on each other.
//
// What is found is what cells are defined by (cells.hpp): a row's list has the first of the rows of its probed cells
// and of the rows whose probed cells hold it.
#pragma once

#include <kith/metric.hpp>
#include <kith/resources.hpp>

#include "core/footprint.hpp"
#include "core/parallel_for.hpp"
#include "graph/build/cells_on_disk/piece_source.hpp"
#include "graph/build/cells_on_disk/cell_store.hpp"
#include "graph/build/cells_on_disk/list_steps.hpp"

#include <cstdint>
#include <memory>

namespace kith {

struct BlockShape {
  int64_t cols = 0;
  DType dtype = DType::f32;
  Metric metric = Metric::l2;
  int64_t k = 0;
  int64_t cells = 0;
  int64_t probes = 0;
  int64_t all_rows = 0;      // of the collection
  int64_t largest_cell = 1;  // its rows
  int64_t rows = 0;          // of a block
  int64_t chunk = 0;         // rows that pass by at a time
};

// A block has room for a piece at least, and a chunk too.
int64_t fewest_block_rows(const BlockShape& shape);
// A block of so many rows, and the chunk that goes well with it on the device of the resources.
BlockShape with_rows(const BlockShape& shape, int64_t rows, const Resources& resources);
BlockShape with_rows_cuda(BlockShape shape, int64_t rows);
// What a block takes there.
Footprint block_footprint(const BlockShape& shape, const Resources& resources);
Footprint block_footprint_cuda(const BlockShape& shape, const Resources& resources);

class BlockComparer {
 public:
  virtual ~BlockComparer() = default;
  // The block of pieces from one on, before `end_piece`, that fits the shape. `meter` counts rows that are done.
  virtual void compare(int64_t first_piece, int64_t end_piece, BlockLists& lists, ProgressMeter& meter) = 0;
};
// On the device of the resources. The store and the resources must outlive it.
std::unique_ptr<BlockComparer> make_block_comparer(const CellStore& store, const BlockShape& shape,
                                                   const Resources& resources);
std::unique_ptr<BlockComparer> make_block_comparer_cuda(const PieceSource& source, const BlockShape& shape,
                                                        const Resources& resources);

}  // namespace kith
