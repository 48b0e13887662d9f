// Chunks found by B-trees: sorted by where they lie in the dataset, rows first.
#pragma once

#include "io/hdf5/block_cache.hpp"
#include "io/hdf5/chunking.hpp"

namespace kith {

Hdf5Chunk find_in_tree_v1(const Hdf5Source& source, Hdf5BlockCache& cache, const Hdf5Chunking& chunking,
                          std::array<int64_t, 2> place);
Hdf5Chunk find_in_tree_v2(const Hdf5Source& source, Hdf5BlockCache& cache, const Hdf5Chunking& chunking,
                          std::array<int64_t, 2> place);

}  // namespace kith
