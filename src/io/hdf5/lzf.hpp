// Unpacks lzf, the fast compression that h5py offers: runs of plain bytes, and copies of what came out before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace kith {

// How many bytes came out, or -1 where the content is damaged or has no room.
int64_t unpack_lzf(std::span<const std::byte> packed, std::span<std::byte> out);

}  // namespace kith
