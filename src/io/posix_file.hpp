// POSIX files: an owned descriptor, and reads and writes that either complete or throw.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace kith {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() { close(); }
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void close() noexcept;

 private:
  int fd_ = -1;
};

struct OpenedFile {
  FileDescriptor file;
  int64_t size = 0;
};

// Opens a regular file and measures it; a directory, a fifo or a device is an IoError, without waiting for it.
OpenedFile open_for_reading(const std::string& path);

// Fills `out` from `offset` on. A file that ends before that shrank since it was measured: CorruptFile.
void read_fully(const FileDescriptor& file, const std::string& path, int64_t offset, void* out, int64_t bytes);

// Writes all of it at the descriptor's position; returns 0 or the errno that stopped it.
int write_fully(const FileDescriptor& file, const void* data, int64_t bytes) noexcept;
// The same at an offset; the position of the file stays.
int write_fully_at(const FileDescriptor& file, const void* data, int64_t bytes, int64_t offset) noexcept;

// "a directory", "a fifo", ...: what stands where a regular file should be.
std::string_view kind_of(mode_t mode);

}  // namespace kith
