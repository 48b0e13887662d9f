// Operations on stored rows of any dtype: widening, and checks for values that a search refuses.
#pragma once

#include <kith/view.hpp>

#include <cstdint>

namespace kith {

// Row i of `view` as f32: exact for every dtype.
void widen_row(const MatrixView& view, int64_t i, float* out);
// The same: the row itself if it is f32; otherwise widened into `room`.
const float* floats_of(const MatrixView& view, int64_t i, float* room);

// Whether every value is finite, of all rows or of row i.
bool rows_are_finite(const MatrixView& rows);
bool row_is_finite(const MatrixView& view, int64_t i);

// Whether a value of row i is below zero.
bool row_has_negative(const MatrixView& view, int64_t i);

}  // namespace kith
