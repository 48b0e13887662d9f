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

#include "core/parallel_for.hpp"
#include "graph/build/cells_on_disk/cell_store.hpp"
#include "graph/build/cells_on_disk/list_steps.hpp"

#include <cstdint>

namespace kith {

struct BlockShape {
  int64_t cols = 0;
  DType dtype = DType::f32;
  Metric metric = Metric::l2;
  int64_t k = 0;
  int64_t cells = 0;
  int64_t probes = 0;
  int64_t rows = 0;   // of a block
  int64_t chunk = 0;  // rows that pass by at a time
};

// A block of so many rows, and the chunk that goes well with it.
BlockShape with_rows(BlockShape shape, int64_t rows);
// A block, and a chunk, has room for a piece of the store.
int64_t fewest_block_rows(const BlockShape& shape);
// What a block takes.
int64_t block_bytes(const BlockShape& shape, const Resources& resources);

// The block of pieces from one on that fits the shape, to the chain. `meter` counts rows that are done.
void compare_block(const CellStore& store, int64_t first_piece, const BlockShape& shape, ListChain& chain,
                   ProgressMeter& meter, const Resources& resources);

}  // namespace kith
