// What was done to a chunk before it was stored, and how it is undone: deflate (gzip), shuffle, Fletcher's checksum and
// lzf. Other filters are Unsupported, by name.
#pragma once

#include <kith/host_buffer.hpp>

#include "io/hdf5/source.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kith {

enum class Hdf5FilterKind : uint8_t { deflate, shuffle, fletcher32, lzf };

struct Hdf5Filter {
  Hdf5FilterKind kind;
  int64_t element_bytes;  // of shuffle
};

// A filter message: in the order in which they were applied.
std::vector<Hdf5Filter> parse_filters(const Hdf5Source& source, Hdf5Cursor message);

// A chunk as it is stored.
struct Hdf5Chunk {
  int64_t at = kHdf5Nowhere;  // which says that it was never written
  int64_t bytes = 0;
  int64_t skipped_filters = 0;  // a bit for each that was not applied
};

// The buffer in which a chunk of so many bytes is read. No filter makes more of it than this.
constexpr int64_t hdf5_buffer_bytes(int64_t chunk_bytes) { return chunk_bytes + chunk_bytes / 8 + 1024; }

// The values of a chunk: `bytes` of them, or CorruptFile. Filters take a second such buffer while they work.
HostBuffer read_chunk(const Hdf5Source& source, const Hdf5Chunk& chunk, const std::vector<Hdf5Filter>& filters,
                      int64_t bytes, const Resources& resources);

// Unpacks lzf, the fast compression that h5py offers: runs of plain bytes, and copies of what came out before.
//
// How many bytes came out, or -1 where the content is damaged or has no room.
int64_t unpack_lzf(std::span<const std::byte> packed, std::span<std::byte> out);

}  // namespace kith
