// Compares a block of rows, which is in memory with its lists, with all rows: first with itself, as in memory, then
// with all others, which are streamed in chunks, those near on the curve of cells first.
//
// Afterwards the block's lists are final: pairs of rows in two blocks are compared once for each block, and no results
// are kept for other blocks. Blocks do not depend on each other.
//
// The result is that of cells (cells.hpp): a row's list has the first among the rows of its probed cells and the rows
// whose probed cells contain it.
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
  int64_t chunk = 0;         // rows streamed at a time
};

// A block, and a chunk, must have room for at least one piece.
int64_t fewest_block_rows(const BlockShape& shape);
// A block of that many rows, and a suitable chunk for the device of the resources.
BlockShape with_rows(const BlockShape& shape, int64_t rows, const Resources& resources);
BlockShape with_rows_cuda(BlockShape shape, int64_t rows);
// The memory of a block on that device.
Footprint block_footprint(const BlockShape& shape, const Resources& resources);
Footprint block_footprint_cuda(const BlockShape& shape, const Resources& resources);

class BlockComparer {
 public:
  virtual ~BlockComparer() = default;
  // Compares the pieces from first_piece on, before end_piece, that fit the shape. `meter` counts finished rows.
  virtual void compare(int64_t first_piece, int64_t end_piece, BlockLists& lists, ProgressMeter& meter) = 0;
};
// On the device of the resources. The store and the resources must outlive it.
std::unique_ptr<BlockComparer> make_block_comparer(const CellStore& store, const BlockShape& shape,
                                                   const Resources& resources);
std::unique_ptr<BlockComparer> make_block_comparer_cuda(const PieceSource& source, const BlockShape& shape,
                                                        const Resources& resources);

}  // namespace kith
