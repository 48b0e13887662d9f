// Norms stored in codes are those of whole vectors, including the centre of their list. Their levels are trained here,
// on the rows on which the code was trained.
//
// Cost: the rows are encoded once. Memory: 4 bytes per row, and a piece of rows with their codes.
#pragma once

#include <kith/metric.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/footprint.hpp"
#include "quantize/codec.hpp"
#include "rows/row_source.hpp"

#include <cstdint>
#include <memory>

namespace kith {

// Throws InvalidArgument if such norms only serve a different metric.
void check_norm_metric(CodeNorm norm, Metric metric);

// The codec with such norms. `rows`: the rows to encode, not opened yet; `lists`: the list of each row; or null.
std::shared_ptr<const Codec> with_norms(const std::shared_ptr<const Codec>& codec, CodeNorm norm, RowSource& rows,
                                        const int32_t* lists, const MatrixView& centres, const Resources& resources);

// The least host memory of with_norms(), including both codecs.
Footprint norm_training_footprint(const CodeRecipe& code, const RowsInfo& rows, const Resources& resources);

}  // namespace kith
