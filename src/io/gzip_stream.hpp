// Reads the content of a gzip file from front to back; to go back, restart. Consecutive gzip members are one content.
// Each member's checksum is verified at its end.
//
// Uses about 100 KiB, whatever the file's size. Only this file uses zlib; a build without it throws
// Unsupported.
#pragma once

#include "io/posix_file.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace kith {

// Deflate makes at most 1032 bytes of one.
inline constexpr int64_t kGzipLargestRatio = 1032;

class GzipStream {
 public:
  GzipStream(FileDescriptor file, std::string path);
  ~GzipStream();

  // Bytes of the content read so far.
  int64_t position() const;
  void restart();
  // Up to `bytes` more of the content; fewer only at its end. CorruptFile where the compressed bytes are wrong.
  int64_t read(void* out, int64_t bytes);
  // How far the file was taken in, for errors.
  int64_t file_offset() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Unpacks a block of memory that zlib made (deflate with zlib's header), as HDF5 stores chunks.
//
// How many bytes came out, or -1 where the content is damaged or has no room. A build without zlib throws Unsupported.
int64_t inflate_block(std::span<const std::byte> packed, std::span<std::byte> out);

}  // namespace kith
