// Norms that codes hold are of whole vectors, the centre of their list included: their levels are trained here, on the
// rows that the code was trained on.
//
// Cost: the rows are encoded once. Memory: 4 bytes a row, and a piece of rows with their codes.
#pragma once

#include <kith/metric.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "quantize/codec.hpp"
#include "rows/row_source.hpp"

#include <cstdint>
#include <memory>

namespace kith {

// InvalidArgument where such norms serve another metric alone.
void check_norm_metric(CodeNorm norm, Metric metric);

// The code with such norms. `rows`: as the code sees them, not opened yet; `lists`: of each, and their centres, or null.
std::shared_ptr<const Codec> with_norms(const std::shared_ptr<const Codec>& codec, CodeNorm norm, RowSource& rows,
                                        const int32_t* lists, const MatrixView& centres, const Resources& resources);

// What with_norms() takes on the host at least, with both codecs.
int64_t norm_training_bytes(const CodeRecipe& code, const RowsInfo& rows, int threads);

}  // namespace kith
