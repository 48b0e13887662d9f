// What the lists of a descent from disk begin with: the neighbours that the graphs know, and random rows. The rows that
// are compared are gathered from the file, as many at a time as there is memory for.
#pragma once

#include "graph/build/descent_on_disk/descent_blocks.hpp"
#include "graph/lists/working_lists.hpp"

#include <cstdint>

namespace kith {

// Offers the first `most` of the graphs' neighbours to the lists of a block.
void offer_graphs(const DescentBlocks& blocks, int64_t block, int64_t most, WorkingLists& lists);
// Offers random rows, as many as there is room for.
void offer_random(const DescentBlocks& blocks, int64_t block, WorkingLists& lists);
// Counts the memory that this takes at least.
void count_start(const DescentBlocks& blocks);

}  // namespace kith
