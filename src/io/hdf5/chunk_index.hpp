// Where the chunks of a dataset are. HDF5 has six ways to say: a B-tree of version 1 in files of the old style; in
// those of the new style one chunk alone, chunks one behind the other, a fixed array, an extensible array (one axis
// without end) or a B-tree of version 2 (both).
//
// A lookup reads what leads to one chunk and keeps the last few blocks of that in a cache: no memory in
// proportion to the number of chunks.
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
  int64_t index_at = kHdf5Nowhere;  // nowhere: no chunk was ever written
  std::array<int64_t, 2> chunk{};   // its rows and columns
  std::array<int64_t, 2> shape{};   // of the dataset
  std::array<int64_t, 2> most{};    // how far it may grow
  int64_t chunk_bytes = 0;          // unpacked
  bool filtered = false;
  bool plain_edges = false;  // chunks that the dataset's edge cuts are stored as they are
  Hdf5Chunk single;          // of Hdf5IndexKind::single, if filtered

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
