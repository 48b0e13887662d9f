#include "io/hdf5/chunk_trees.hpp"

#include "io/hdf5/tree_v2.hpp"

#include <fmt/format.h>

namespace kith {
namespace {

using Place = std::array<int64_t, 2>;

constexpr std::string_view kChunkTreeNode = "a node of the tree of chunks";

// Before a child of a tree of version 1: the first chunk below it.
struct Key {
  int64_t bytes;
  int64_t skipped_filters;
  Place first_value;
};

Key read_key(Hdf5Cursor& cursor) {
  Key key{};
  key.bytes = cursor.u32();
  key.skipped_filters = cursor.u32();
  for (int64_t& axis : key.first_value) axis = cursor.number(8);
  cursor.skip(8);  // inside of an element
  return key;
}

}  // namespace

Hdf5Chunk find_in_tree_v1(const Hdf5Source& source, Hdf5BlockCache& cache, const Hdf5Chunking& chunking, Place place) {
  constexpr int64_t kChunkNode = 1;
  constexpr int64_t kKeyBytes = 4 + 4 + 3 * 8;
  const Place wanted{place[0] * chunking.chunk[0], place[1] * chunking.chunk[1]};
  const int64_t head_bytes = 8 + 2 * source.offset_bytes;
  const int64_t entry_bytes = kKeyBytes + source.offset_bytes;
  int64_t at = chunking.index_at;
  int64_t expected_level = -1;  // any
  while (true) {
    const Hdf5Block& head = cache.read(source, at, head_bytes, kChunkTreeNode);
    Hdf5Cursor cursor(source, head, kChunkTreeNode);
    cursor.expect("TREE");
    if (cursor.u8() != kChunkNode) source.corrupt(at, "a tree of chunks has a node that holds none");
    const int64_t level = cursor.u8();
    if (expected_level >= 0 && level != expected_level) source.corrupt(at, "a tree of chunks has a wrong level");
    const int64_t entries = cursor.u16();

    // The last entry that does not begin behind the chunk.
    const Hdf5Block& body = cache.read(source, at + head_bytes, entries * entry_bytes, kChunkTreeNode);
    const auto entry_at = [&](int64_t i) {
      Hdf5Cursor entry(source, body, kChunkTreeNode);
      entry.skip(i * entry_bytes);
      return entry;
    };
    int64_t low = 0;
    int64_t high = entries;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      Hdf5Cursor entry = entry_at(middle);
      if (read_key(entry).first_value > wanted) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    if (low == 0) return {};
    Hdf5Cursor entry = entry_at(low - 1);
    const Key key = read_key(entry);
    const int64_t child = entry.address();
    if (level == 0) {
      return key.first_value == wanted ? Hdf5Chunk{child, key.bytes, key.skipped_filters} : Hdf5Chunk{};
    }
    if (child == kHdf5Nowhere) return {};
    at = child;
    expected_level = level - 1;
  }
}

// A record is the chunk's address, if filtered its bytes and the filters' mask, and where it lies, counted in chunks.
Hdf5Chunk find_in_tree_v2(const Hdf5Source& source, Hdf5BlockCache& cache, const Hdf5Chunking& chunking, Place place) {
  constexpr int64_t kPlainRecords = 10;
  constexpr int64_t kFilteredRecords = 11;
  constexpr int64_t kMaskBytes = 4;
  constexpr int64_t kPlaceBytes = 2 * 8;
  const Hdf5TreeV2 tree(source, cache, chunking.index_at, chunking.filtered ? kFilteredRecords : kPlainRecords);
  const int64_t size_bytes =
      chunking.filtered ? tree.record_bytes() - source.offset_bytes - kMaskBytes - kPlaceBytes : 0;
  if (size_bytes < 0 || size_bytes > 8) source.corrupt(chunking.index_at, "a tree of chunks has impossible records");

  Hdf5Chunk chunk;
  tree.find([&](Hdf5Cursor record) {
    const int64_t at = record.address();
    const int64_t bytes = chunking.filtered ? record.number(size_bytes) : chunking.chunk_bytes;
    const int64_t skipped = chunking.filtered ? record.u32() : 0;
    Place given{};
    for (int64_t& axis : given) axis = record.number(8);
    if (given != place) return place < given ? -1 : 1;
    chunk = {at, bytes, skipped};
    return 0;
  });
  return chunk;
}

}  // namespace kith
