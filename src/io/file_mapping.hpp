// Maps a file into memory, read-only, as long as this lives.
#pragma once

#include "io/matrix_file.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace kith {

class FileMapping {
 public:
  FileMapping() = default;
  FileMapping(const FileDescriptor& file, int64_t bytes, const std::string& path);
  ~FileMapping();
  FileMapping(FileMapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  FileMapping& operator=(FileMapping&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  const std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

// Asks the system to read mapped bytes from the disk in the background.
void expect_mapped(const void* data, int64_t bytes) noexcept;
// Drops the pages of these mapped bytes from the process; they stay in the page cache while the system has room.
void release_mapped(const void* data, int64_t bytes) noexcept;

// A matrix file in memory: values lie at `values`, rows `row_stride` values apart.
struct MappedMatrix {
  FileMapping mapping;
  const std::byte* values = nullptr;
  int64_t row_stride = 0;
};

// Throws InvalidArgument if the values cannot be used in place.
void check_mappable(const MatrixFile& file);
MappedMatrix map_matrix(const MatrixFile& file);

}  // namespace kith
