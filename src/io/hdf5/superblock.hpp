// The superblock, with which an HDF5 file begins: at byte 0, or behind a block of the user's own at 512, 1024, 2048,
// ... Versions 0 to 3.
#pragma once

#include "io/hdf5/source.hpp"

namespace kith {

// Fills in what `source` lacks, base and widths, and returns where the header of the root group is.
int64_t read_superblock(Hdf5Source& source);

}  // namespace kith
