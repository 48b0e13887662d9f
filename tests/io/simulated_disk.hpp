// A disk in memory that can be crashed, filled and broken at any call, for tests of what must survive that.
//
// It knows what is on the disk and what only the system knows: bytes are on the disk after sync(), names after
// sync_folder(). A crash leaves what is on the disk, or, since a system may write names early, the names as they were
// with the bytes that were synced.
#pragma once

#include <kith/error.hpp>

#include "io/disk.hpp"
#include "io/file_error.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kith::testing {

// The power is gone: no Error, so that nobody handles it.
struct Crash {};

enum class DiskCall { open, create, read, write, reserve, sync, rename, remove, sync_folder };
enum class Loss { all_that_is_not_synced, bytes_that_are_not_synced };

class SimulatedDisk final : public Disk {
 public:
  // Call number `at` (counted from 0, of all kinds or of one) crashes or fails with this code.
  struct Fault {
    int64_t at = 0;
    int code = 0;  // 0: crash
    std::optional<DiskCall> kind;
  };
  void set_fault(const Fault& fault) {
    fault_ = fault;
    calls_ = 0;
  }
  void clear_fault() { fault_.reset(); }
  int64_t calls() const { return calls_; }  // of the fault's kind, since it was set
  void set_capacity(int64_t bytes) { capacity_ = bytes; }
  // Reads and writes move so many bytes at most.
  void set_shortest(int64_t bytes) { shortest_ = bytes; }

  void crash(Loss loss) {
    names_ = loss == Loss::all_that_is_not_synced ? synced_names_ : names_;
    for (auto& [path, inode] : names_) inode->bytes = inode->synced;
    synced_names_ = names_;
    locked_.clear();
    fault_.reset();
    dead_ = false;
  }

  std::string content(const std::string& path) const { return names_.at(path)->bytes; }
  void set_content(const std::string& path, std::string bytes) {
    names_[path] = std::make_shared<Inode>(Inode{bytes, bytes});
    synced_names_[path] = names_[path];
  }

  std::unique_ptr<DiskFile> open(const std::string& path) override {
    count(DiskCall::open, path);
    if (!names_.contains(path)) throw_io_error("open", path, ENOENT);
    return std::make_unique<File>(*this, path, names_[path]);
  }
  std::unique_ptr<DiskFile> create(const std::string& path) override {
    count(DiskCall::create, path);
    names_[path] = std::make_shared<Inode>();
    return std::make_unique<File>(*this, path, names_[path]);
  }
  void rename(const std::string& from, const std::string& to) override {
    count(DiskCall::rename, to);
    if (!names_.contains(from)) throw_io_error("rename", from, ENOENT);
    names_[to] = names_[from];
    names_.erase(from);
  }
  void remove(const std::string& path) override {
    count(DiskCall::remove, path);
    names_.erase(path);
  }
  bool exists(const std::string& path) override { return names_.contains(path); }
  std::vector<std::string> list(const std::string& folder) override {
    std::vector<std::string> found;
    for (const auto& [path, inode] : names_) {
      if (path.starts_with(folder + "/")) found.push_back(path.substr(folder.size() + 1));
    }
    return found;
  }
  void make_folder(const std::string&) override {}
  void sync_folder(const std::string& folder) override {
    count(DiskCall::sync_folder, folder);
    std::erase_if(synced_names_, [&](const auto& entry) { return entry.first.starts_with(folder + "/"); });
    for (const auto& [path, inode] : names_) {
      if (path.starts_with(folder + "/")) synced_names_[path] = inode;
    }
  }
  int64_t free_bytes(const std::string&) override { return capacity_ - used(); }
  std::unique_ptr<DiskLock> try_lock(const std::string& path, LockKind kind) override {
    const auto held = locked_.find(path);
    if (held != locked_.end() && (held->second.kind == LockKind::alone || kind == LockKind::alone)) return nullptr;
    locked_[path].kind = kind;
    ++locked_[path].holders;
    if (!names_.contains(path)) set_content(path, "");
    return std::make_unique<Lock>(*this, path);
  }

 private:
  struct Held {
    LockKind kind = LockKind::alone;
    int holders = 0;
  };
  struct Inode {
    std::string bytes;
    std::string synced;
  };

  class File final : public DiskFile {
   public:
    File(SimulatedDisk& disk, const std::string& path, std::shared_ptr<Inode> inode)
        : DiskFile(path), disk_(disk), inode_(std::move(inode)) {}
    int64_t size() const override { return static_cast<int64_t>(inode_->bytes.size()); }
    void reserve(int64_t bytes) override {
      disk_.count(DiskCall::reserve, path());
      if (bytes > disk_.free_bytes("")) throw_io_error("reserve room for", path(), ENOSPC);
    }
    void sync() override {
      disk_.count(DiskCall::sync, path());
      inode_->synced = inode_->bytes;
    }

   private:
    int64_t read_some(int64_t offset, void* out, int64_t bytes) const override {
      disk_.count(DiskCall::read, path());
      const int64_t some = std::clamp<int64_t>(size() - offset, 0, std::min(bytes, disk_.shortest_));
      if (some > 0) std::memcpy(out, inode_->bytes.data() + offset, static_cast<size_t>(some));
      return some;
    }
    int64_t write_some(int64_t offset, const void* data, int64_t bytes) override {
      disk_.count(DiskCall::write, path());
      const int64_t some = std::min(bytes, disk_.shortest_);
      const int64_t end = std::max(size(), offset + some);
      if (end - size() > disk_.free_bytes("")) throw_io_error("write", path(), ENOSPC);
      inode_->bytes.resize(static_cast<size_t>(end));
      std::memcpy(inode_->bytes.data() + offset, data, static_cast<size_t>(some));
      return some;
    }

    SimulatedDisk& disk_;
    std::shared_ptr<Inode> inode_;
  };

  class Lock final : public DiskLock {
   public:
    Lock(SimulatedDisk& disk, std::string path) : disk_(disk), path_(std::move(path)) {}
    ~Lock() override {
      const auto held = disk_.locked_.find(path_);
      if (held != disk_.locked_.end() && --held->second.holders == 0) disk_.locked_.erase(held);
    }

   private:
    SimulatedDisk& disk_;
    std::string path_;
  };

  void count(DiskCall kind, const std::string& path) {
    if (dead_) throw Crash();
    if (!fault_ || (fault_->kind && *fault_->kind != kind)) return;
    if (calls_++ != fault_->at) return;
    if (fault_->code == 0) {
      dead_ = true;  // until crash()
      throw Crash();
    }
    throw_io_error("use", path, fault_->code);
  }
  int64_t used() const {
    int64_t bytes = 0;
    for (const auto& [path, inode] : names_) bytes += static_cast<int64_t>(inode->bytes.size());
    return bytes;
  }

  std::map<std::string, std::shared_ptr<Inode>> names_;
  std::map<std::string, std::shared_ptr<Inode>> synced_names_;
  std::map<std::string, Held> locked_;
  std::optional<Fault> fault_;
  bool dead_ = false;
  std::atomic<int64_t> calls_ = 0;  // steps are read by several threads
  int64_t capacity_ = INT64_MAX / 2;
  int64_t shortest_ = INT64_MAX;
};

}  // namespace kith::testing
