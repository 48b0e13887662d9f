// The second step of centre_sums_cuda.hpp: the sums of every run, the rows of one centre in one block, in the order of
// their numbers; and, read once for both, the rows' canonical keys to that centre.
#pragma once

#include "cluster/centre_sums_cuda.hpp"

#include <cstdint>

namespace kith {

// What is the same for all rows of a piece.
struct SumBlocks {
  int64_t first = 0;  // row of the piece
  int64_t size = 0;   // of a block
  int64_t clusters = 0;
  int64_t count = 0;        // blocks that the piece touches
  bool continues = false;   // the first has begun in the piece before
  bool stays_open = false;  // the last goes on in the next
};

// `order` has the rows sorted by run.
void launch_run_sums(const SumsTask& task, const SumBlocks& blocks, const uint32_t* order, cudaStream_t stream);
void launch_run_sums_and_keys(const SumsTask& task, const SumBlocks& blocks, const uint32_t* order,
                              cudaStream_t stream);

}  // namespace kith
