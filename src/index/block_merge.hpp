// When blocks of an index are merged: what is added takes with it the blocks before it that are at most so many times, as
// a rule twice, as large as what has come together so far. So n single adds cost n log n copies and leave log n blocks;
// the more times, the fewer blocks and the more copies.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kith {

// How many of the first blocks stay as they are when `added` rows come. rows_of(b): the rows of block b, negative where
// it is never merged.
template <typename RowsOf>
size_t blocks_that_stay(size_t blocks, int64_t added, const RowsOf& rows_of, int64_t times = 2) {
  int64_t together = added;
  while (blocks > 0 && rows_of(blocks - 1) >= 0 && rows_of(blocks - 1) <= times * together) {
    together += rows_of(--blocks);
  }
  return blocks;
}

}  // namespace kith
