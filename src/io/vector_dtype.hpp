// The dtype of a file's vectors.
#pragma once

#include <kith/dtype.hpp>

#include "io/matrix_file.hpp"

namespace kith {

// Throws InvalidArgument for a file of ids.
DType vector_dtype(const MatrixFile& file);

}  // namespace kith
