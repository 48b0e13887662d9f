// Rows of an open file in memory, as read_vectors returns them.
#pragma once

#include <kith/matrix_buffer.hpp>
#include <kith/vector_file.hpp>

namespace kith {

// With progress, and a look at the cancel flag every few MiB. InvalidArgument where the rows are not there.
MatrixBuffer read_rows(const VectorFile& file, RowRange range, DType dtype, const Resources& resources);

}  // namespace kith
