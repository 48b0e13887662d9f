// The file operations for work that must survive a kill: few, so that tests can replace the disk by a failing or
// simulated one, and crash it anywhere.
//
// A file is written under another name, synced, renamed, and its folder synced: after a crash its name then shows
// either nothing or the whole file. Errors are IoError with the path and the system's code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kith {

// An open file. Reads are const and may come from several threads.
class DiskFile {
 public:
  explicit DiskFile(std::string path) : path_(std::move(path)) {}
  virtual ~DiskFile() = default;
  DiskFile(const DiskFile&) = delete;
  DiskFile& operator=(const DiskFile&) = delete;

  const std::string& path() const { return path_; }
  virtual int64_t size() const = 0;

  // Reads all of these bytes. CorruptFile if the file ends before.
  void read(int64_t offset, void* out, int64_t bytes) const;
  void write(int64_t offset, const void* data, int64_t bytes);
  // Allocates space for `bytes` bytes, so that writing them later cannot find the disk full. The size stays.
  virtual void reserve(int64_t bytes) = 0;
  // Makes all writes durable.
  virtual void sync() = 0;
  // All of its bytes in memory, read-only, as long as the result lives; mapped if the disk supports it.
  virtual std::shared_ptr<const std::byte> map() const = 0;

 protected:
  // Reads some of these bytes, at least one; returns 0 at the end of the file.
  virtual int64_t read_some(int64_t offset, void* out, int64_t bytes) const = 0;
  virtual int64_t write_some(int64_t offset, const void* data, int64_t bytes) = 0;

 private:
  std::string path_;
};

// A lock, held as long as this lives, and released when the process ends for any reason. A forked child holds none.
class DiskLock {
 public:
  virtual ~DiskLock() = default;
};

// Whether one lock of this name is held at a time, or any number of shared ones.
enum class LockKind : uint8_t { alone, shared };

class Disk {
 public:
  virtual ~Disk() = default;

  virtual std::unique_ptr<DiskFile> open(const std::string& path) = 0;  // to read
  // Creates an empty file, replacing one of this name.
  virtual std::unique_ptr<DiskFile> create(const std::string& path) = 0;
  virtual void rename(const std::string& from, const std::string& to) = 0;
  // Removing a file that does not exist is no error.
  virtual void remove(const std::string& path) = 0;
  // A second name for a file that never changes; a copy, synced, where the disk cannot. IoError (EEXIST) where the name
  // is taken.
  virtual void link(const std::string& from, const std::string& to) = 0;
  virtual bool exists(const std::string& path) = 0;
  // The names in a folder, ascending.
  virtual std::vector<std::string> list(const std::string& folder) = 0;
  // Makes the folder and its parents; existing ones stay.
  virtual void make_folder(const std::string& folder) = 0;
  // Makes all writes to a closed file durable.
  virtual void sync_file(const std::string& path) = 0;
  // Makes creations, renames and removals in the folder durable.
  virtual void sync_folder(const std::string& folder) = 0;
  virtual int64_t free_bytes(const std::string& folder) = 0;
  // Null if another process, or another lock of this process, holds it.
  virtual std::unique_ptr<DiskLock> try_lock(const std::string& path, LockKind kind) = 0;
};

// The file system.
Disk& real_disk();

}  // namespace kith
