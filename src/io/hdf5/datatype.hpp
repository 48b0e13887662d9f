// Between the elements of Kith's files and HDF5's datatype messages.
#pragma once

#include "io/file_layout.hpp"
#include "io/hdf5/source.hpp"

#include <string>

namespace kith {

// Throws InvalidArgument for types that Kith does not take.
ElementType parse_datatype(const Hdf5Source& source, Hdf5Cursor message);

// The content of a datatype message. bf16 has no type in HDF5: it is for the caller to refuse.
std::string make_datatype(ElementType element);

}  // namespace kith
