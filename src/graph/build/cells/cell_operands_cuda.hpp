// The rows of a collection as operands of the matrix units, cell by cell, and tiles of queries gathered from them: the
// queries of a graph are its rows.
//
// A pair's value is term + product, as in a search (kernels/matrix/candidate_window.hpp), and with the query's own part
// added it is the same from both sides: half the squared distance of the rounded vectors, or the negative product.
#pragma once

#include "graph/lists/working_lists_cuda.hpp"
#include "kernels/matrix/operand_bounds.hpp"
#include "kernels/matrix/product_plan.hpp"
#include "rows/device_rows.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace kith {

// On the device. Values are floats where operands are halves, int32_t where they are bytes.
struct CellOperands {
  KeyKind kind = KeyKind::l2;
  OperandType type = OperandType::half;
  DType dtype = DType::f32;
  int64_t cols = 0;
  int64_t chunks = 0;
  int64_t places = 0;                   // whole tiles
  const uint32_t* place_rows = nullptr;  // the row at each place, or kNoPlace
  std::byte* operands = nullptr;         // operand_bytes
  void* terms = nullptr;                 // of each place
  void* pair_terms = nullptr;            // for each tile its terms, then what each row has left taken off them
  void* own = nullptr;                   // of each place: its own part, as a query
  float* norms = nullptr;                // an upper bound of each operand's length
  void* limits = nullptr;                // of each place: the largest value of a pair that may matter to it
  BaseBounds* bounds = nullptr;
};

// After launch_base_operands: no term where there is no row; own parts and lengths. Enqueues and returns.
void launch_finish_operands(const CellOperands& cells, cudaStream_t stream);

// Slot i of `out`, in the layout of operands, becomes the query at place slots[i]; zeros where there is none. Whole tiles
// of queries. Enqueues and returns.
void launch_gather_queries(const CellOperands& cells, const uint32_t* slots, int64_t count, std::byte* out,
                           cudaStream_t stream);

// places -> the rows to make operands of: a row's own, any where there is none.
void launch_operand_list(const uint32_t* place_rows, int64_t places, uint32_t* list, cudaStream_t stream);
// norms[i] of row list[i], for DeviceRowsView, which wants them in its own order.
void launch_gather_norms(const double* norms, const uint32_t* list, int64_t count, double* out, cudaStream_t stream);

// What a pair's value may be so that it still matters to a row: from the last neighbour of the row's list, with the error
// bound of the products, or from the least values in its own cell where the list is empty.

// The limits of all places and the terms of pairs; no pair matters to a row without a list. Enqueues and returns.
struct CellLimits {
  bool lists = false;       // limits come from lists, where these are full; else nothing is known yet
  bool both_sides = false;  // rows are offered what compares itself with them, too
};
void launch_cell_limits(const CellOperands& cells, const DeviceWorkingLists& lists, const CellLimits& from,
                        cudaStream_t stream);

// The limits of the rows in some slots, from the least values of parts of their cell (kernels/matrix ProductParts): `k`
// of them, the row's own among these, are not above the k-th least. A lower limit stays. `stride` at most
// kMostCellParts.
void launch_limits_of_parts(const CellOperands& cells, const uint32_t* slots, int64_t count, const float* parts,
                            int64_t stride, int64_t k, cudaStream_t stream);

// What ProductPairs wants for each slot: a query's limit without its own part, and the negative of that.
void launch_slot_limits(const CellOperands& cells, const uint32_t* slots, int64_t count, void* out,
                        cudaStream_t stream);

}  // namespace kith
