// Whether an HDF5 file may be replaced. A file that Kith writes holds one dataset; an older file of that name may hold
// more, and whoever names a dataset in it may expect the others to stay.
#pragma once

#include "io/file_format.hpp"

namespace kith {

// Throws InvalidArgument where the file of that name holds anything but that dataset, or cannot be read as HDF5. One
// that is not there, is empty or holds nothing may be replaced.
void check_hdf5_target(const FileName& name);

}  // namespace kith
