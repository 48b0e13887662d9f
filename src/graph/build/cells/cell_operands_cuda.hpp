// The rows of a collection as operands of the matrix units, cell by cell, and tiles of queries gathered from them: the
// queries of a graph are its own rows.
//
// A pair's value is term + product, as in a search (kernels/matrix/candidate_window.hpp). Plus the query's own part it
// is symmetric: half the squared distance of the rounded vectors, or the negative product.
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
  int64_t places = 0;                   // rounded up to whole tiles
  const uint32_t* place_rows = nullptr;  // per place: its row, or kNoPlace
  std::byte* operands = nullptr;         // operand_bytes
  void* terms = nullptr;                 // per place
  void* pair_terms = nullptr;            // per tile: its terms, then the terms minus each row's limit
  void* own = nullptr;                   // per place: its own part as a query
  float* norms = nullptr;                // per place: an upper bound of the operand's norm
  void* limits = nullptr;                // per place: the largest value of a pair that may matter to it
  BaseBounds* bounds = nullptr;
};

// After launch_base_operands: resets the terms of empty places; computes own parts and norms. Enqueues.
void launch_finish_operands(const CellOperands& cells, cudaStream_t stream);

// Gathers the query at place slots[i] into slot i of `out`, in the layout of operands; zeros for unused slots. Whole
// tiles of queries. Enqueues.
void launch_gather_queries(const CellOperands& cells, const uint32_t* slots, int64_t count, std::byte* out,
                           cudaStream_t stream);

// The row to make each place's operand from; any row for empty places.
void launch_operand_list(const uint32_t* place_rows, int64_t places, uint32_t* list, cudaStream_t stream);
// Gathers norms[i] of row list[i], the order of a DeviceRowsView.
void launch_gather_norms(const double* norms, const uint32_t* list, int64_t count, double* out, cudaStream_t stream);

// The limit up to which a pair's value matters to a row: from the last neighbour of the row's list plus the products'
// error bound, or, while the list is empty, from the smallest values in its own cell.

// Computes the limits of all places and the terms of pairs; no pair matters to a row without a list. Enqueues.
struct CellLimits {
  bool lists = false;       // limits come from full lists; else none is known yet
  bool both_sides = false;  // rows of a cell get offers too, not only the queries
};
void launch_cell_limits(const CellOperands& cells, const DeviceWorkingLists& lists, const CellLimits& from,
                        cudaStream_t stream);

// Limits for the rows in a range of slots from the smallest value of each part of their cell (kernels/matrix
// ProductParts): at least `k` pairs, the row's own included, are not above the k-th smallest of these. Never raises a
// limit. `stride` is at most kMostCellParts.
void launch_limits_of_parts(const CellOperands& cells, const uint32_t* slots, int64_t count, const float* parts,
                            int64_t stride, int64_t k, cudaStream_t stream);

// The input of ProductPairs per slot: the query's limit without its own part, and its negative.
void launch_slot_limits(const CellOperands& cells, const uint32_t* slots, int64_t count, void* out,
                        cudaStream_t stream);

}  // namespace kith
