// Reads runs of values, counted along the rows, from an open file of any format.
//
// One call may begin and end inside a row, so that values can be moved in pieces of any size. Calls are const and come
// from many threads at once.
#pragma once

#include "io/file_layout.hpp"
#include "io/posix_file.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace kith {

// The size of the buffer if values cannot be read in place. Small enough for any thread's stack.
inline constexpr int64_t kPieceBytes = 32 * 1024;

class ValueReader {
 public:
  virtual ~ValueReader() = default;
  virtual void read(int64_t first, int64_t count, void* out) const = 0;
  // The host memory of reads beside their output, which is kept for the next read until it is freed.
  virtual int64_t memory_bytes() const { return 0; }
  virtual void free_memory() const {}
  // A file that can be mapped, with values where the layout says; null if there is none.
  virtual const FileDescriptor* mappable() const { return nullptr; }
};

// A file whose header has been read.
struct OpenedMatrix {
  FileLayout layout;
  std::shared_ptr<const ValueReader> values;
};

// Values one behind the other: .npy, the bin formats, and datasets of HDF5 that are stored in one piece.
class PlainValues final : public ValueReader {
 public:
  PlainValues(FileDescriptor file, const FileLayout& layout, std::string path)
      : file_(std::move(file)), layout_(layout), path_(std::move(path)) {}

  void read(int64_t first, int64_t count, void* out) const override {
    const int64_t bytes = layout_.element_bytes();
    read_fully(file_, path_, layout_.data_offset + first * bytes, out, count * bytes);
  }
  const FileDescriptor* mappable() const override { return &file_; }

 private:
  FileDescriptor file_;
  FileLayout layout_;
  std::string path_;
};

}  // namespace kith
