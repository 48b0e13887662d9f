// Training of residual codes: k-means of what the best path of each row leaves, one book after the other.
//
// Cost: a k-means of the rows and a step of the beam search for each book. Memory: the rows and their residuals as f32,
// up to 65,536 of them, and beam x books bytes a row.
#pragma once

#include <kith/residual_quantizer.hpp>
#include <kith/resources.hpp>

#include "rows/row_source.hpp"

#include <cstdint>
#include <vector>

namespace kith {

int64_t residual_training_bytes(const ResidualQuantizerParams& params, int64_t rows, int64_t cols, int threads);

// books x 2^bits x cols.
std::vector<float> train_residual(const ResidualQuantizerParams& params, RowSource& rows, const Resources& resources);

}  // namespace kith
