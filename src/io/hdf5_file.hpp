// HDF5 datasets of two axes, in the layout of ann-benchmarks: `train` and `test` are vectors, `neighbors` ids,
// `distances` f32.
//
// libhdf5 is asked where a dataset lies; one that lies in one piece is then read and written without it, like any other
// file. Only chunked ones (compressed, for instance) are read through it, by one thread at a time. A build without HDF5
// throws Unsupported.
#pragma once

#include "io/file_format.hpp"
#include "io/value_reader.hpp"

#include <cstdint>
#include <string>

namespace kith {

OpenedMatrix open_hdf5(OpenedFile opened, const FileName& name);

// Makes the file `target` anew, with one dataset for such values, and returns where in it these go.
int64_t create_hdf5(const std::string& target, const FileName& name, const FileLayout& layout);

}  // namespace kith
