// Finds the chunks of a dataset. HDF5 has six kinds of chunk index: a version 1 B-tree in files of the old style; in
// those of the new style a single chunk, consecutive chunks, a fixed array, an extensible array (one unlimited axis) or
// a version 2 B-tree (two).
//
// A lookup reads the path to one chunk and caches the last few blocks of it, so that memory does not grow with the
// number of chunks.
#pragma once

#include "io/hdf5/filters.hpp"
#include "io/hdf5/source.hpp"

#include <array>
#include <cstdint>

namespace kith {

// How a dataset is cut into chunks, and which of HDF5's six ways says where they are.

enum class Hdf5IndexKind : uint8_t { tree_v1, single, implicit, fixed_array, extensible_array, tree_v2 };

// An axis of a dataset that may grow for ever.
inline constexpr int64_t kHdf5Unlimited = INT64_MAX;

struct Hdf5Chunking {
  Hdf5IndexKind kind = Hdf5IndexKind::tree_v1;
  int64_t index_at = kHdf5Nowhere;  // kHdf5Nowhere: no chunk was ever written
  std::array<int64_t, 2> chunk{};   // rows and columns of a chunk
  std::array<int64_t, 2> shape{};   // rows and columns of the dataset
  std::array<int64_t, 2> most{};    // the dataset's maximum shape
  int64_t chunk_bytes = 0;          // of an unpacked chunk
  bool filtered = false;
  bool plain_edges = false;  // partial chunks at the dataset's edge are stored unfiltered
  Hdf5Chunk single;          // set for a filtered Hdf5IndexKind::single

  int64_t chunks_along(size_t axis) const { return count(shape[axis], chunk[axis]); }
  // Some indices count the chunks as if the dataset had grown.
  int64_t most_chunks_along(size_t axis) const { return count(most[axis], chunk[axis]); }

 private:
  static int64_t count(int64_t length, int64_t part) { return length / part + (length % part != 0 ? 1 : 0); }
};

// `place` counts chunks, not values.
Hdf5Chunk find_chunk(const Hdf5Source& source, Hdf5BlockCache& cache, const Hdf5Chunking& chunking,
                     std::array<int64_t, 2> place);

}  // namespace kith
