// Unpacks a block of memory that zlib made (deflate with zlib's header), as HDF5 stores chunks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace kith {

// How many bytes came out, or -1 where the content is damaged or has no room. A build without zlib throws Unsupported.
int64_t inflate_block(std::span<const std::byte> packed, std::span<std::byte> out);

}  // namespace kith
