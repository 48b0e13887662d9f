// Whether all values of rows are numbers, wherever these lie.
#pragma once

#include <kith/resources.hpp>

#include "rows/row_source.hpp"

namespace kith {

// InvalidArgument, naming the row, for a NaN or an infinity. Opens the source.
void refuse_not_finite_rows(RowSource& source, const Resources& resources);

}  // namespace kith
