#include "io/zlib_block.hpp"

#include <kith/error.hpp>

#include <zlib.h>

#include <climits>

namespace kith {

int64_t inflate_block(std::span<const std::byte> packed, std::span<std::byte> out) {
  if (packed.size() > UINT_MAX || out.size() > UINT_MAX) return -1;
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) throw OutOfMemory("zlib could not start: out of memory", 0);
  // zlib has no const here, and does not write.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = inflate(&stream, Z_FINISH);
  const auto left = static_cast<int64_t>(stream.avail_out);
  inflateEnd(&stream);
  return result == Z_STREAM_END ? static_cast<int64_t>(out.size()) - left : -1;
}

}  // namespace kith
