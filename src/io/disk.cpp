#include "io/disk.hpp"

#include <kith/error.hpp>

#include "io/file_error.hpp"
#include "io/posix_file.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <utility>

namespace kith {

void DiskFile::read(int64_t offset, void* out, int64_t bytes) const {
  auto* to = static_cast<std::byte*>(out);
  while (bytes > 0) {
    const int64_t got = read_some(offset, to, bytes);
    if (got == 0) throw_corrupt(path_, offset, fmt::format("the file ends here, {} bytes early", bytes));
    to += got;
    offset += got;
    bytes -= got;
  }
}

void DiskFile::write(int64_t offset, const void* data, int64_t bytes) {
  const auto* from = static_cast<const std::byte*>(data);
  while (bytes > 0) {
    const int64_t put = write_some(offset, from, bytes);
    from += put;
    offset += put;
    bytes -= put;
  }
}

namespace {

namespace fs = std::filesystem;

class RealFile final : public DiskFile {
 public:
  RealFile(std::string path, FileDescriptor file) : DiskFile(std::move(path)), file_(std::move(file)) {}

  int64_t size() const override {
    struct stat info {};
    if (::fstat(file_.get(), &info) != 0) throw_io_error("examine", path(), errno);
    return info.st_size;
  }

  void reserve(int64_t bytes) override {
    if (bytes <= 0) return;
    int code = 0;
    do {
      code = ::fallocate(file_.get(), FALLOC_FL_KEEP_SIZE, 0, bytes) == 0 ? 0 : errno;
    } while (code == EINTR);
    reserved_ = true;
    if (code == 0 || code == EOPNOTSUPP || code == ENOSYS) return;  // there writing finds out
    throw_io_error(fmt::format("reserve {} bytes for", bytes), path(), code);
  }

  void sync() override {
    if (::fsync(file_.get()) != 0) throw_io_error("sync", path(), errno);
  }

  std::shared_ptr<const std::byte> map() const override {
    const auto bytes = static_cast<size_t>(size());
    if (bytes == 0) return nullptr;  // which mmap refuses
    void* const data = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file_.get(), 0);
    if (data == MAP_FAILED) throw_io_error("map", path(), errno);
    return {static_cast<const std::byte*>(data),
            [bytes](const std::byte* mapped) { ::munmap(const_cast<std::byte*>(mapped), bytes); }};
  }

 private:
  int64_t read_some(int64_t offset, void* out, int64_t bytes) const override {
    for (;;) {
      const ssize_t got = ::pread(file_.get(), out, static_cast<size_t>(bytes), offset);
      if (got >= 0) return got;
      if (errno != EINTR) throw_io_error(fmt::format("read byte {} of", offset), path(), errno);
    }
  }

  int64_t write_some(int64_t offset, const void* data, int64_t bytes) override {
    for (;;) {
      const ssize_t put = ::pwrite(file_.get(), data, static_cast<size_t>(bytes), offset);
      if (put > 0) {
        // Files with reserved space are written completely and then synced: start writeback at once.
        if (reserved_ && put >= kWorthBeginning) ::sync_file_range(file_.get(), offset, put, SYNC_FILE_RANGE_WRITE);
        return put;
      }
      if (put == 0) throw_io_error(fmt::format("write byte {} of", offset), path(), EIO);
      if (errno != EINTR) throw_io_error(fmt::format("write byte {} of", offset), path(), errno);
    }
  }

  static constexpr ssize_t kWorthBeginning = ssize_t{1} << 20;

  FileDescriptor file_;
  bool reserved_ = false;
};

// The locks that this process holds. A forked child has copies of their descriptors, by which the system would hold
// them for as long as the child lives: it closes them.
class HeldLocks {
 public:
  static HeldLocks& of_process() {
    static HeldLocks* const held = new HeldLocks;  // never destroyed: locks may be given up while the process ends
    return *held;
  }

  void add(FileDescriptor& file) {
    const std::lock_guard lock(mutex_);
    files_.push_back(&file);
  }
  void give_up(FileDescriptor& file) {
    const std::lock_guard lock(mutex_);
    std::erase(files_, &file);
    file.close();
  }

 private:
  HeldLocks() {
    ::pthread_atfork([] { of_process().mutex_.lock(); }, [] { of_process().mutex_.unlock(); }, [] {
      for (FileDescriptor* file : of_process().files_) file->close();
      of_process().files_.clear();
      of_process().mutex_.unlock();
    });
  }

  std::mutex mutex_;
  std::vector<FileDescriptor*> files_;
};

class RealLock final : public DiskLock {
 public:
  explicit RealLock(FileDescriptor file) : file_(std::move(file)) { HeldLocks::of_process().add(file_); }
  ~RealLock() override { HeldLocks::of_process().give_up(file_); }

 private:
  FileDescriptor file_;  // closing it gives the lock up
};

class RealDisk final : public Disk {
 public:
  std::unique_ptr<DiskFile> open(const std::string& path) override {
    return std::make_unique<RealFile>(path, open_for_reading(path).file);
  }

  std::unique_ptr<DiskFile> create(const std::string& path) override {
    return std::make_unique<RealFile>(path, opened(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, "create"));
  }

  void rename(const std::string& from, const std::string& to) override {
    if (std::rename(from.c_str(), to.c_str()) != 0) throw_io_error("put a finished file in the place of", to, errno);
  }

  void remove(const std::string& path) override {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) throw_io_error("remove", path, errno);
  }

  void link(const std::string& from, const std::string& to) override {
    if (::link(from.c_str(), to.c_str()) == 0) return;
    const bool other_file_system = errno == EXDEV || errno == EPERM || errno == EMLINK || errno == ENOTSUP;
    if (!other_file_system) throw_io_error("make a second name for", to, errno);
    copy(from, to);
  }

  bool exists(const std::string& path) override {
    struct stat info {};
    if (::stat(path.c_str(), &info) == 0) return true;
    if (errno == ENOENT || errno == ENOTDIR) return false;
    throw_io_error("examine", path, errno);
  }

  std::vector<std::string> list(const std::string& folder) override {
    std::error_code error;
    std::vector<std::string> names;
    for (fs::directory_iterator at(folder, error); !error && at != fs::directory_iterator(); at.increment(error)) {
      names.push_back(at->path().filename().string());
    }
    if (error) throw_io_error("list the folder", folder, error.value());
    std::sort(names.begin(), names.end());
    return names;
  }

  void make_folder(const std::string& folder) override {
    std::error_code error;
    fs::create_directories(folder, error);
    if (!error && !fs::is_directory(folder, error)) error = std::make_error_code(std::errc::not_a_directory);
    if (error) throw_io_error("make the folder", folder, error.value());
  }

  void sync_file(const std::string& path) override {
    const FileDescriptor file = opened(path, O_RDWR | O_CLOEXEC, "open");
    if (::fsync(file.get()) != 0) throw_io_error("sync", path, errno);
  }

  void sync_folder(const std::string& folder) override {
    const FileDescriptor file = opened(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, "open the folder");
    // File systems that cannot sync a folder are left to the system.
    if (::fsync(file.get()) != 0 && errno != EINVAL && errno != ENOTSUP) {
      throw_io_error("sync the folder", folder, errno);
    }
  }

  int64_t free_bytes(const std::string& folder) override {
    struct statvfs info {};
    if (::statvfs(folder.c_str(), &info) != 0) throw_io_error("ask how much is free in", folder, errno);
    return static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_frsize);
  }

  std::unique_ptr<DiskLock> try_lock(const std::string& path, LockKind kind) override {
    FileDescriptor file = opened(path, O_RDWR | O_CREAT | O_CLOEXEC, "open the lock");
    if (::flock(file.get(), (kind == LockKind::shared ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0) {
      // Whoever had the lock may have removed its file in between: then it is no lock any more.
      struct stat held{};
      struct stat named{};
      const bool there = ::fstat(file.get(), &held) == 0 && ::stat(path.c_str(), &named) == 0;
      if (!there || held.st_ino != named.st_ino) return nullptr;
      return std::make_unique<RealLock>(std::move(file));
    }
    if (errno == EWOULDBLOCK) return nullptr;
    throw_io_error("lock", path, errno);
  }

 private:
  void copy(const std::string& from, const std::string& to) {
    const std::unique_ptr<DiskFile> source = open(from);
    const std::unique_ptr<DiskFile> target =
        std::make_unique<RealFile>(to, opened(to, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, "create"));
    constexpr int64_t kStep = int64_t{4} << 20;
    std::vector<std::byte> bytes(static_cast<size_t>(std::min(kStep, source->size())));
    for (int64_t at = 0, end = source->size(); at < end;) {
      const int64_t some = std::min(kStep, end - at);
      source->read(at, bytes.data(), some);
      target->write(at, bytes.data(), some);
      at += some;
    }
    target->sync();
  }

  static FileDescriptor opened(const std::string& path, int flags, const char* action) {
    constexpr mode_t kMode = 0666;  // less the umask
    int fd = -1;
    do {
      fd = ::open(path.c_str(), flags, kMode);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0) throw_io_error(action, path, errno);
    return FileDescriptor(fd);
  }
};

}  // namespace

Disk& real_disk() {
  static RealDisk disk;  // it has no state
  return disk;
}

}  // namespace kith
