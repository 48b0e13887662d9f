// Rows so large or small that squares of their differences leave f32's range are multiplied by a power of two, which is
// exact; centres, distances and objectives are scaled back.
//
// Which power follows from up to 256 rows, evenly spread, and is 1 for all but extreme data. Scaled rows are made piece
// by piece from the source, as f32 on the host, as if they came from a file. Memory: a piece.
#pragma once

#include <kith/matrix_buffer.hpp>

#include "cluster/data_sample.hpp"
#include "cluster/kmeans_fit.hpp"

#include <cstdint>

namespace kith {

// The exponent of the power of two for values of this magnitude; 0 unless they are extreme.
int scale_exponent(float largest);

// The rows times 2^exponent; as they are where that is 1.
KMeansRows scaled_rows(const KMeansRows& rows, int exponent);
// A copy on the host.
MatrixBuffer scaled_copy(const MatrixView& rows, int exponent, const Resources& resources);
// In place: f32 on the host.
void scale_values(const MutableMatrixView& rows, int exponent);

}  // namespace kith
