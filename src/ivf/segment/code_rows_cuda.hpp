// Rows become a segment of lists on a GPU: with the bytes of build_segment() on the CPU.
//
// Piece after piece: the list of each row (coding_steps_cuda.hpp), rows less their centres, codes; then all are sorted by
// list. Rows come from the host or lie on the device. Cost: 2 rows x lists x columns operations of products and what the
// code takes.
// Memory on the device: the centres twice; for each row its code twice and 20 bytes; for a row of a piece, of which
// there are up to 512 MiB as f32, its values as they are and as f32, as halves, and some 90 bytes.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "ivf/model/ivf_model.hpp"
#include "ivf/segment/list_segment.hpp"

#include <cstdint>

namespace kith {

// The rows are numbers first_row, first_row + 1, ... InvalidArgument for values that a stored code cannot hold.
Segment code_rows_cuda(int device, const IvfModel& model, const MatrixView& rows, int64_t first_row,
                            const Resources& resources);

// How many of these rows are coded together: as many as fit half of the device memory left; 65,536, or all, at least.
int64_t rows_coded_together(int device, const IvfModel& model, const MatrixView& rows, const Resources& resources);

}  // namespace kith
