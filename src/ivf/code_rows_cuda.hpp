// The lists and codes of rows, computed on a GPU: the same bytes as on the CPU.
//
// Piece after piece: the nearest centre of each row by exact search, rows less their centres, codes. Rows come from the
// host or lie on the device. Cost: 2 rows x lists x columns operations of products and what the code takes. Memory on
// the device: the centres twice, and for a row of a piece 16 bytes, its values as they are and as f32, and its code.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "ivf/ivf_model.hpp"

#include <cstdint>

namespace kith {

// To host memory, in the order of rows. `lists` is null where the model has no centres.
void code_rows_cuda(int device, const IvfModel& model, const MatrixView& rows, int32_t* lists, uint8_t* codes,
                    const Resources& resources);

}  // namespace kith
