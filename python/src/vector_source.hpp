// Vectors to be read piece by piece, as the package names them: the path of a file or a pattern of several (bytes), a
// list of such, or an object with path, shape, dtype and read(first, count), which brings rows as a numpy array.
#pragma once

#include <kith/vector_file.hpp>

#include <nanobind/nanobind.h>

namespace kith::python {

namespace nb = nanobind;

VectorFile vector_file_of(const nb::object& source);

}  // namespace kith::python
