// HDF5 datasets of two axes, in the layout of ann-benchmarks: `train` and `test` are vectors, `neighbors` ids,
// `distances` f32.
//
// The format is read by our own code in hdf5/, from its public specification (versions 1.0 to 4.0): superblock, object
// headers, groups, and a dataset that lies in one piece, in its header, in chunks or nowhere. A dataset in one piece is
// then like any other file, and can be mapped.
#pragma once

#include "io/file_format.hpp"
#include "io/value_reader.hpp"

namespace kith {

OpenedMatrix open_hdf5(OpenedFile opened, const FileName& name);

}  // namespace kith
