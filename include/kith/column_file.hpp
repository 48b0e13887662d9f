// Files with one number per row: weights, or the bytes of a mask.
#pragma once

#include <kith/export.hpp>
#include <kith/matrix_buffer.hpp>
#include <kith/resources.hpp>

#include <string>

namespace kith {

// Reads a whole file with one column or one row, or an .npy with one axis; the result has one column. Formats and
// errors are those of vector_file.hpp.
KITH_EXPORT MatrixBuffer read_column(const std::string& path, const Resources& resources = Resources());

}  // namespace kith
