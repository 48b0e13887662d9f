// What Kith asks of a disk where it keeps work that must survive a kill: few calls, so that tests can put a failing disk
// or a simulated one in the place of the real one, and crash it anywhere.
//
// A file is written under another name, synced, renamed, and its folder synced: after a crash a name then shows nothing
// or the whole file. Errors are IoError with the path and the system's code.
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

  // All of these bytes. CorruptFile where the file ends before.
  void read(int64_t offset, void* out, int64_t bytes) const;
  void write(int64_t offset, const void* data, int64_t bytes);
  // Takes the room for so many bytes, so that writing them later finds a disk that is not full. The size stays.
  virtual void reserve(int64_t bytes) = 0;
  // What was written is on the disk afterwards.
  virtual void sync() = 0;
  // All of its bytes in memory, read-only, as long as what is returned lives: mapped, where the disk can.
  virtual std::shared_ptr<const std::byte> map() const = 0;

 protected:
  // As many of these bytes as the disk likes, at least one; 0 at the end of the file.
  virtual int64_t read_some(int64_t offset, void* out, int64_t bytes) const = 0;
  virtual int64_t write_some(int64_t offset, const void* data, int64_t bytes) = 0;

 private:
  std::string path_;
};

// Held as long as it lives, and given up by a process that ends, however it ends. A forked child holds none of them.
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
  // An empty file, in the place of one of this name.
  virtual std::unique_ptr<DiskFile> create(const std::string& path) = 0;
  virtual void rename(const std::string& from, const std::string& to) = 0;
  // A file that is not there is as good as removed.
  virtual void remove(const std::string& path) = 0;
  // A second name for a file that never changes; a copy, synced, where the disk cannot. IoError (EEXIST) where the name
  // is taken.
  virtual void link(const std::string& from, const std::string& to) = 0;
  virtual bool exists(const std::string& path) = 0;
  // The names in a folder, ascending.
  virtual std::vector<std::string> list(const std::string& folder) = 0;
  // And those above it; one that is there is left as it is.
  virtual void make_folder(const std::string& folder) = 0;
  // What was written to a file that somebody else has written is on the disk afterwards.
  virtual void sync_file(const std::string& path) = 0;
  // Names that were made, changed or removed in the folder are so on the disk afterwards.
  virtual void sync_folder(const std::string& folder) = 0;
  virtual int64_t free_bytes(const std::string& folder) = 0;
  // Null where another process, or another lock of this one, holds it.
  virtual std::unique_ptr<DiskLock> try_lock(const std::string& path, LockKind kind) = 0;
};

// The file system.
Disk& real_disk();

}  // namespace kith
