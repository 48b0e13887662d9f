#include "io/posix_file.hpp"

#include <kith/error.hpp>

#include "io/file_error.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

namespace kith {

static_assert(sizeof(off_t) == 8, "files larger than 2 GiB need a 64-bit off_t");

void FileDescriptor::close() noexcept {
  // Not repeated after EINTR: Linux has released the descriptor by then, and another thread may own its number.
  if (is_open()) ::close(std::exchange(fd_, -1));
}

OpenedFile open_for_reading(const std::string& path) {
  if (path.find('\0') != std::string::npos) throw InvalidArgument("a path with a zero byte in it cannot be opened");
  // O_NONBLOCK: a fifo without a writer opens at once, to be refused below, instead of waiting for one.
  int fd = -1;
  do {
    fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) throw_io_error("open", path, errno);

  FileDescriptor file(fd);
  struct stat info {};
  if (::fstat(fd, &info) != 0) throw_io_error("examine", path, errno);
  if (!S_ISREG(info.st_mode)) {
    throw IoError(
        fmt::format("cannot read '{}': it is {}; only regular files can be read", path, kind_of(info.st_mode)), path,
        S_ISDIR(info.st_mode) ? EISDIR : 0);
  }
  ::fcntl(fd, F_SETFL, 0);  // reads may wait from here on
  return {std::move(file), static_cast<int64_t>(info.st_size)};
}

void read_fully(const FileDescriptor& file, const std::string& path, int64_t offset, void* out, int64_t bytes) {
  auto* to = static_cast<std::byte*>(out);
  while (bytes > 0) {
    const ssize_t got = ::pread(file.get(), to, static_cast<size_t>(bytes), offset);
    if (got < 0) {
      if (errno == EINTR) continue;
      throw_io_error(fmt::format("read byte {} of", offset), path, errno);
    }
    if (got == 0) {
      throw_corrupt(path, offset,
                    fmt::format("the file ends here, {} bytes early; it was shortened while open", bytes));
    }
    to += got;
    offset += got;
    bytes -= got;
  }
}

int write_fully(const FileDescriptor& file, const void* data, int64_t bytes) noexcept {
  const auto* from = static_cast<const std::byte*>(data);
  while (bytes > 0) {
    const ssize_t put = ::write(file.get(), from, static_cast<size_t>(bytes));
    if (put < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    if (put == 0) return EIO;
    from += put;
    bytes -= put;
  }
  return 0;
}

int write_fully_at(const FileDescriptor& file, const void* data, int64_t bytes, int64_t offset) noexcept {
  const auto* from = static_cast<const std::byte*>(data);
  while (bytes > 0) {
    const ssize_t put = ::pwrite(file.get(), from, static_cast<size_t>(bytes), offset);
    if (put < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    if (put == 0) return EIO;
    from += put;
    offset += put;
    bytes -= put;
  }
  return 0;
}

std::string_view kind_of(mode_t mode) {
  if (S_ISREG(mode)) return "a regular file";
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a fifo";
  if (S_ISCHR(mode)) return "a character device";
  if (S_ISBLK(mode)) return "a block device";
  if (S_ISSOCK(mode)) return "a socket";
  return "no regular file";
}

}  // namespace kith
