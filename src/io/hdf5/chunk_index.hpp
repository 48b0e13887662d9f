// Where the chunks of a dataset are. HDF5 has six ways to say: a B-tree of version 1 in files of the old style; in
// those of the new style one chunk alone, chunks one behind the other, a fixed array, an extensible array (one axis
// without end) or a B-tree of version 2 (both).
//
// A lookup reads what leads to one chunk and keeps the last few blocks of that in a cache: no memory in
// proportion to the number of chunks.
#pragma once

#include "io/hdf5/block_cache.hpp"
#include "io/hdf5/chunking.hpp"
#include "io/hdf5/source.hpp"

#include <array>
#include <cstdint>

namespace kith {

// `place` counts chunks, not values.
Hdf5Chunk find_chunk(const Hdf5Source& source, Hdf5BlockCache& cache, const Hdf5Chunking& chunking,
                     std::array<int64_t, 2> place);

}  // namespace kith
