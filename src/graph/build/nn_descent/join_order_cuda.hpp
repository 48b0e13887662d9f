// An order of the rows in which those that share neighbours come near each other, from their lists: blocks of a join that run
// at the same time then gather the same rows, from the cache. What a join offers does not depend on it.
//
// A row's label is the least hash among itself and its nearest neighbours; labels of labels reach neighbours' neighbours. Rows
// with the same label of the third generation, some hundreds, come together, among these rows with the same of the second,
// and so on (min-wise hashing: rows share a label as likely as they share neighbours).
//
// Memory: 32 bytes a row and what a radix sort takes, for as long as launch_join_order() works. Time: three passes over the first
// neighbours of all lists, and the sort.
#pragma once

#include "cuda/workspace_layout.hpp"
#include "graph/lists/working_lists_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace kith {

struct JoinOrderLayout : WorkspaceLayout {
  explicit JoinOrderLayout(int64_t rows);

  Slot<uint32_t> labels[2];
  Slot<uint64_t> keys[2];
  Slot<uint32_t> numbers[2];
  Slot<std::byte> sort;
};

// Every row once into `order`. `memory` has layout.bytes, of a layout for so many rows. Enqueues.
void launch_join_order(const DeviceWorkingLists& lists, const JoinOrderLayout& layout, std::byte* memory, uint32_t* order,
                       cudaStream_t stream);

}  // namespace kith
