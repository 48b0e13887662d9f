// Chunks found by arrays of their addresses: fixed, where the number of chunks is known, and extensible, where one axis
// of the dataset has no end.
#pragma once

#include "io/hdf5/block_cache.hpp"
#include "io/hdf5/chunking.hpp"

namespace kith {

Hdf5Chunk find_in_fixed_array(const Hdf5Source& source, Hdf5BlockCache& cache, const Hdf5Chunking& chunking,
                              int64_t number);
Hdf5Chunk find_in_extensible_array(const Hdf5Source& source, Hdf5BlockCache& cache, const Hdf5Chunking& chunking,
                                   std::array<int64_t, 2> place);

}  // namespace kith
