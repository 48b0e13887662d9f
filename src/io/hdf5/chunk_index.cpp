#include "io/hdf5/chunk_index.hpp"

#include "core/byte_size.hpp"
#include "io/hdf5/chunk_arrays.hpp"
#include "io/hdf5/chunk_trees.hpp"

#include <fmt/format.h>

namespace kith {
namespace {

// Its number, row after row, in a dataset that has grown as far as it may.
int64_t number_of(const Hdf5Chunking& chunking, std::array<int64_t, 2> place) {
  const int64_t before = saturating_multiply(place[0], chunking.most_chunks_along(1));
  return before > INT64_MAX - place[1] ? INT64_MAX : before + place[1];
}

Hdf5Chunk implicit_chunk(const Hdf5Source& source, const Hdf5Chunking& chunking, int64_t number) {
  const int64_t offset = saturating_multiply(number, chunking.chunk_bytes);
  source.check_inside(chunking.index_at, offset, "the chunks");
  return {chunking.index_at + offset, chunking.chunk_bytes, 0};
}

Hdf5Chunk look_up(const Hdf5Source& source, Hdf5BlockCache& cache, const Hdf5Chunking& chunking,
                  std::array<int64_t, 2> place) {
  switch (chunking.kind) {
    case Hdf5IndexKind::tree_v1: return find_in_tree_v1(source, cache, chunking, place);
    case Hdf5IndexKind::single:
      return chunking.filtered ? chunking.single : Hdf5Chunk{chunking.index_at, chunking.chunk_bytes, 0};
    case Hdf5IndexKind::implicit: return implicit_chunk(source, chunking, number_of(chunking, place));
    case Hdf5IndexKind::fixed_array: return find_in_fixed_array(source, cache, chunking, number_of(chunking, place));
    case Hdf5IndexKind::extensible_array: return find_in_extensible_array(source, cache, chunking, place);
    case Hdf5IndexKind::tree_v2: return find_in_tree_v2(source, cache, chunking, place);
  }
  return {};
}

bool is_cut(const Hdf5Chunking& chunking, std::array<int64_t, 2> place) {
  for (size_t axis = 0; axis < 2; ++axis) {
    if (place[axis] + 1 == chunking.chunks_along(axis) && chunking.shape[axis] % chunking.chunk[axis] != 0) return true;
  }
  return false;
}

}  // namespace

Hdf5Chunk find_chunk(const Hdf5Source& source, Hdf5BlockCache& cache, const Hdf5Chunking& chunking,
                     std::array<int64_t, 2> place) {
  if (chunking.index_at == kHdf5Nowhere) return {};
  Hdf5Chunk chunk = look_up(source, cache, chunking, place);
  if (chunk.at == kHdf5Nowhere) return chunk;
  source.check_inside(chunk.at, chunk.bytes, "a chunk");
  if (chunking.plain_edges && is_cut(chunking, place)) chunk.skipped_filters = -1;
  return chunk;
}

}  // namespace kith
