#include "io/atomic_file_writer.hpp"

#include <kith/error.hpp>

#include "core/start_beside.hpp"
#include "io/disk.hpp"
#include "io/file_error.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <future>
#include <utility>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kBufferBytes = 256 * 1024;
constexpr int64_t kMadeBytes = 256 * 1024;  // made at a time by a thread; whole values of any size that divides a page
constexpr int64_t kThreadBytes = 1 << 20;   // that are worth a thread
constexpr int64_t kMostThreads = 8;
constexpr int64_t kPageBytes = 4096;
constexpr std::string_view kTemporaryBegin = ".kith-";
constexpr std::string_view kTemporaryEnd = ".tmp";
constexpr std::string_view kRunEnd = ".run.tmp";  // of passing_files.hpp

// The path that will be replaced, links resolved; refuses what must not be replaced.
std::filesystem::path resolve_target(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return path;
    throw_io_error("write", path, errno);
  }
  std::string target = path;
  if (S_ISLNK(info.st_mode)) {
    const std::unique_ptr<char, decltype(&std::free)> resolved(::realpath(path.c_str(), nullptr), &std::free);
    if (resolved == nullptr) throw_io_error("follow the symbolic link", path, errno);
    target = resolved.get();
    if (::lstat(target.c_str(), &info) != 0) throw_io_error("write", path, errno);
  }
  if (!S_ISREG(info.st_mode)) {
    throw IoError(
        fmt::format("cannot write '{}': it is {}, which a finished file would replace; give the name of a regular file",
                    path, kind_of(info.st_mode)),
        path, S_ISDIR(info.st_mode) ? EISDIR : 0);
  }
  return target;
}

// Makes the new name durable. Directories that may be written but not read, and file systems that cannot sync a
// directory, are left to the system.
int sync_directory(const FileDescriptor& directory) {
  const FileDescriptor readable(::openat(directory.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!readable.is_open()) return errno == EACCES ? 0 : errno;
  if (::fsync(readable.get()) == 0 || errno == EINVAL || errno == ENOTSUP) return 0;
  return errno;
}

}  // namespace

AtomicFileWriter::AtomicFileWriter(const std::string& path) : path_(path), buffer_(new std::byte[kBufferBytes]) {
  if (path.find('\0') != std::string::npos) throw InvalidArgument("a path with a zero byte in it cannot be written");
  const std::filesystem::path target = resolve_target(path);
  name_ = target.filename();
  // All later steps are relative to this handle, so that a change of the working directory does not matter.
  const std::string parent = target.has_parent_path() ? target.parent_path().string() : ".";
  directory_ = FileDescriptor(::open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory_.is_open()) throw_io_error(fmt::format("open the directory '{}' to write", parent), path, errno);
  create_temporary();
}

void AtomicFileWriter::create_temporary() {
  constexpr int kAttempts = 16;
  constexpr mode_t kMode = 0666;  // less the umask, as for any new file
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    uint64_t random = 0;
    if (::getentropy(&random, sizeof(random)) != 0) fail("name a temporary file for", errno);
    temporary_ = fmt::format("{}{:016x}{}", kTemporaryBegin, random, kTemporaryEnd);
    file_ =
        FileDescriptor(::openat(directory_.get(), temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kMode));
    if (file_.is_open()) {
      if (lock_while_open(file_)) return keep_permissions();
      continue;
    }
    if (errno != EEXIST && errno != EINTR) break;
  }
  fail("make a temporary file beside", errno);
}

void AtomicFileWriter::keep_permissions() {
  constexpr mode_t kPermissions = 0777;
  struct stat target {};
  if (::fstatat(directory_.get(), name_.c_str(), &target, 0) != 0) return;  // a new file
  if (::fchmod(file_.get(), target.st_mode & kPermissions) != 0) fail("keep the permissions of", errno);
}

void AtomicFileWriter::write(const void* data, int64_t bytes) {
  check_open();
  if (bytes > kBufferBytes - buffered_) {
    flush();
    if (bytes >= kBufferBytes) return write_through(data, bytes);
  }
  if (bytes > 0) std::memcpy(buffer_.get() + buffered_, data, static_cast<size_t>(bytes));
  buffered_ += bytes;
}

void AtomicFileWriter::overwrite(int64_t offset, const void* data, int64_t bytes) {
  check_open();
  flush();
  if (const int code = write_fully_at(file_, data, bytes, offset); code != 0) fail("write", code);
}

void AtomicFileWriter::sync() {
  check_open();
  flush();
  if (::fsync(file_.get()) != 0) fail("sync", errno);
}

void AtomicFileWriter::commit() {
  sync();
  rename_into_place();
  if (const int code = sync_directory(directory_); code != 0) throw_io_error("sync the directory of", path_, code);
}

void AtomicFileWriter::commit_unsynced() {
  check_open();
  flush();
  rename_into_place();
}

void AtomicFileWriter::rename_into_place() {
  if (::renameat(directory_.get(), temporary_.c_str(), directory_.get(), name_.c_str()) != 0) {
    fail("put the finished file in the place of", errno);
  }
  file_.close();
}

void AtomicFileWriter::check_open() const {
  if (!file_.is_open()) {
    throw InvalidState(fmt::format("the writer of '{}' has committed or failed; make a new one to write again", path_));
  }
}

void AtomicFileWriter::write_made(int64_t bytes, const Fill& fill) {
  check_open();
  flush();
  write_pieces(bytes, [&](int64_t offset, int64_t count, int64_t at) {
    const std::unique_ptr<std::byte[]> made(new std::byte[static_cast<size_t>(std::min(kMadeBytes, count))]);
    for (int64_t done = 0; done < count; done += kMadeBytes) {
      const int64_t some = std::min(kMadeBytes, count - done);
      fill(offset + done, some, made.get());
      if (const int code = write_fully_at(file_, made.get(), some, at + done); code != 0) return code;
    }
    return 0;
  });
}

void AtomicFileWriter::write_through(const void* data, int64_t bytes) {
  if (bytes < 2 * kThreadBytes) {
    if (const int code = write_fully(file_, data, bytes); code != 0) fail("write", code);
    return;
  }
  const auto* const from = static_cast<const std::byte*>(data);
  write_pieces(bytes, [&](int64_t offset, int64_t count, int64_t at) {
    return write_fully_at(file_, from + offset, count, at);
  });
}

void AtomicFileWriter::write_pieces(int64_t bytes, const std::function<int(int64_t, int64_t, int64_t)>& put) {
  const off_t begin = ::lseek(file_.get(), 0, SEEK_CUR);
  if (begin < 0) fail("write", errno);
  const int64_t pieces = std::clamp<int64_t>(bytes / kThreadBytes, 1, kMostThreads);
  // Threads that write to the same page wait for its lock, so pieces share a page at most at their ends.
  const int64_t each = (bytes / pieces + kPageBytes - 1) / kPageBytes * kPageBytes;
  int code = 0;
  try {
    std::vector<std::future<int>> written;
    for (int64_t offset = each; offset < bytes; offset += each) {
      written.push_back(start_beside([&put, offset, begin, count = std::min(each, bytes - offset)] {
        return put(offset, count, begin + offset);
      }));
    }
    if (bytes > 0) code = put(0, std::min(each, bytes), begin);
    for (std::future<int>& piece : written) {
      if (const int other = piece.get(); code == 0) code = other;
    }
  } catch (...) {  // the other threads have ended
    discard();
    throw;
  }
  if (code != 0) fail("write", code);
  if (::lseek(file_.get(), begin + bytes, SEEK_SET) < 0) fail("write", errno);
}

void AtomicFileWriter::discard() noexcept {
  if (!file_.is_open()) return;
  ::unlinkat(directory_.get(), temporary_.c_str(), 0);
  file_.close();
}

void AtomicFileWriter::fail(std::string_view action, int code) {
  discard();
  throw_io_error(action, path_, code);
}

namespace {

bool is_hexadecimal(std::string_view digits) {
  return digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Whether whoever made this file holds its lock.
bool is_held(const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  return file.is_open() && ::flock(file.get(), LOCK_EX | LOCK_NB) != 0;
}

}  // namespace

bool lock_while_open(const FileDescriptor& file) {
  // Whoever looks for files left behind holds the lock for a moment. A file system without locks answers with an error.
  while (::flock(file.get(), LOCK_EX) != 0 && errno == EINTR) {
  }
  struct stat info {};
  return ::fstat(file.get(), &info) != 0 || info.st_nlink > 0;
}

void remove_left_behind(const std::string& folder) {
  constexpr size_t kNumber = kTemporaryBegin.size() + 16;
  for (const std::string& name : real_disk().list(folder)) {
    const bool temporary = name.size() >= kNumber + kTemporaryEnd.size() && name.starts_with(kTemporaryBegin) &&
                           name.ends_with(kTemporaryEnd) &&
                           is_hexadecimal(std::string_view(name).substr(kTemporaryBegin.size(), 16));
    if (!temporary) continue;
    const std::string path = folder + "/" + name;
    if (name.size() == kNumber + kTemporaryEnd.size()) {
      const FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
      if (file.is_open() && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0) real_disk().remove(path);
    } else if (name.ends_with(kRunEnd)) {
      const std::string mark = folder + "/" + name.substr(0, kNumber) + std::string(kTemporaryEnd);
      if (!is_held(mark)) real_disk().remove(path);
    }
  }
}

void remove_left_beside(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  try {
    remove_left_behind(folder.empty() ? "." : folder);
  } catch (const IoError&) {  // a folder that may be written but not read
  }
}

}  // namespace kith
