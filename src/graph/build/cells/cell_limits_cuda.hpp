// What a pair's value may be so that it still matters to a row: from the last neighbour of the row's list, with the error
// bound of the products, or from the least values in its own cell where the list is empty.
#pragma once

#include "graph/build/cells/cell_operands_cuda.hpp"
#include "graph/lists/list_passes_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// The limits of all places and the terms of pairs. `from_lists`: else nothing is known yet, limits come later and rows
// are not offered what compares itself with them. Enqueues and returns.
void launch_cell_limits(const CellOperands& cells, const DeviceWorkingLists& lists, bool from_lists,
                        cudaStream_t stream);

// The limits of the rows in some slots, from the least values of parts of their cell (kernels/matrix ProductParts): `k`
// of them, the row's own among these, are not above the k-th least. `stride` at most kMostCellParts.
void launch_limits_of_parts(const CellOperands& cells, const uint32_t* slots, int64_t count, const float* parts,
                            int64_t stride, int64_t k, cudaStream_t stream);

// What ProductPairs wants for each slot: a query's limit without its own part, and the negative of that.
void launch_slot_limits(const CellOperands& cells, const uint32_t* slots, int64_t count, void* out,
                        cudaStream_t stream);

}  // namespace kith
