// Stands in for gzip_stream.cpp where zlib is left out.
#include "io/gzip_stream.hpp"

#include <kith/error.hpp>

#include <fmt/format.h>

namespace kith {

struct GzipStream::Impl {};

GzipStream::GzipStream(FileDescriptor, std::string path) {
  throw Unsupported(
      fmt::format("'{}' is compressed, and this build of Kith has no zlib; unpack it with gunzip, or build Kith where "
                  "zlib's headers are installed",
                  path));
}
GzipStream::~GzipStream() = default;
int64_t GzipStream::position() const { return 0; }
int64_t GzipStream::file_offset() const { return 0; }
void GzipStream::restart() {}
int64_t GzipStream::read(void*, int64_t) { return 0; }

int64_t inflate_block(std::span<const std::byte>, std::span<std::byte>) {
  throw Unsupported(
      "the dataset is compressed, and this build of Kith has no zlib; rewrite it with h5repack -f NONE, or build Kith "
      "where zlib's headers are installed");
}

}  // namespace kith
