// The rows that additive codes are trained on, and whether there are enough.
#pragma once

#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "rows/row_source.hpp"

#include <cstdint>
#include <string_view>

namespace kith {

// InvalidArgument for fewer rows than codewords of a book; a warning for fewer than train well. `what`: for its text.
void check_training_rows(std::string_view what, int64_t rows, int bits, const Resources& resources);

// All rows as f32, or `most` of them, drawn by the seed. InvalidArgument, naming the row, for a NaN or an infinity.
HostArray<float> training_sample(RowSource& source, int64_t most, uint64_t seed, const Resources& resources);

}  // namespace kith
