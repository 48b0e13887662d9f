// Encodes rows into a segment of lists on a GPU; the result is identical to build_segment() on the CPU.
//
// Each piece of rows is assigned to lists (coding_steps_cuda.hpp), its centres are subtracted and the residuals
// encoded; at the end everything is sorted by list. Rows come from the host or are in device memory. Cost: 2 rows x
// lists x columns operations of products, and the cost of encoding. Device memory: the centres twice; for each row its
// code twice and 20 bytes; for each row of a piece, of up to 512 MiB as f32, its values in their own type, as f32 and
// as halves, and about 90 bytes.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "ivf/model/ivf_model.hpp"
#include "ivf/segment/list_segment.hpp"

#include <cstdint>

namespace kith {

// The rows get numbers first_row, first_row + 1, ... InvalidArgument for values that a stored code cannot hold.
Segment code_rows_cuda(int device, const IvfModel& model, const MatrixView& rows, int64_t first_row,
                            const Resources& resources);

// How many of these rows are coded together: as many as fit half of the free device memory; at least 65,536, or all.
int64_t rows_coded_together(int device, const IvfModel& model, const MatrixView& rows, const Resources& resources);

}  // namespace kith
