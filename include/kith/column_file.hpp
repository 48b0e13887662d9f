// A number for each row, in a file: weights, or the bytes of a mask.
#pragma once

#include <kith/export.hpp>
#include <kith/matrix_buffer.hpp>
#include <kith/resources.hpp>

#include <string>

namespace kith {

// Reads a file of one column or one row, or an .npy of one axis, whole; the result has one column. The formats, and the
// errors, are those of vector_file.hpp.
KITH_EXPORT MatrixBuffer read_column(const std::string& path, const Resources& resources = Resources());

}  // namespace kith
