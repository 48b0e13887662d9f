// Between the elements of Kith's files and the types of libhdf5.
#pragma once

#include "io/element_type.hpp"
#include "io/hdf5_library.hpp"

#include <string>

namespace kith {

// Throws InvalidArgument for types that Kith does not take. `path` is for the error alone.
ElementType element_of_hdf5(const Hdf5Session& hdf5, const Hdf5Id& type, const std::string& path);

// bf16 has no type in HDF5: it is for the caller to refuse.
Hdf5Id hdf5_type_of(const Hdf5Session& hdf5, ElementType element);

}  // namespace kith
