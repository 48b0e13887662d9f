// A disk in memory that can be crashed, filled and broken at any call, for tests of what must survive that.
//
// It knows what is on the disk and what only the system knows: bytes are on the disk after sync(), names after
// sync_folder(). crash() leaves what is on the disk, or, since a system may write names early, the names as they were
// with the bytes that were synced. crash_state() leaves any subset of what was not synced: of the writes, each torn at
// sectors of 512 bytes, and of the changes of names, in no order of files or folders.
#pragma once

#include <kith/error.hpp>

#include "io/disk.hpp"
#include "io/file_error.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kith::testing {

// The power is gone: no Error, so that nobody handles it.
struct Crash {};

enum class DiskCall { open, create, read, write, reserve, sync, rename, remove, sync_folder, name };
enum class Loss { all_that_is_not_synced, bytes_that_are_not_synced };

class SimulatedDisk final : public Disk {
 public:
  static constexpr int kNoError = -1;
  // Call number `at` (counted from 0, of all kinds or of one) crashes or fails with this code.
  struct Fault {
    int64_t at = 0;
    int code = 0;  // 0: crash
    std::optional<DiskCall> kind;
    bool half = false;   // a read or write moves half of its bytes first; with kNoError it says so, and nothing fails
    bool names = false;  // calls that look names up are counted too: exists, list, make_folder, try_lock
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
  // Is called after every call that changes something.
  void set_watch(std::function<void()> watch) { watch_ = std::move(watch); }

  void crash(Loss loss) {
    names_ = loss == Loss::all_that_is_not_synced ? synced_names_ : names_;
    for (auto& [path, inode] : names_) inode->bytes = inode->synced;
    for (auto& [path, inode] : names_) inode->pending.clear();
    synced_names_ = names_;
    changes_.clear();
    locked_.clear();
    fault_.reset();
    dead_ = false;
  }

  // What a crash could leave, as files by path and folders with "/" behind them. choose(n) draws a number below n.
  using Content = std::map<std::string, std::string>;
  Content crash_state(const std::function<int64_t(int64_t)>& choose) const {
    std::map<std::string, std::shared_ptr<Inode>> names = synced_names_;
    // None of what waits, all of it, or some: the ends are what most mistakes need.
    const int64_t how = choose(4);
    const auto happens = [&] { return how == 0 ? false : how == 1 ? true : choose(2) == 0; };
    for (const NameChange& change : changes_) {
      if (!happens()) continue;
      for (const auto& [path, inode] : change) {
        if (inode) {
          names[path] = inode;
        } else {
          names.erase(path);
        }
      }
    }
    Content content;
    std::map<const Inode*, std::string> bytes;  // a file with two names has one content
    for (const auto& [path, inode] : names) {
      if (!reachable(names, path)) continue;
      if (inode->folder) {
        content[path + "/"] = "";
        continue;
      }
      const auto [known, fresh] = bytes.emplace(inode.get(), "");
      if (fresh) known->second = torn(*inode, choose);
      content[path] = known->second;
    }
    return content;
  }
  // A disk that holds this, all of it synced.
  explicit SimulatedDisk(const Content& content) {
    for (const auto& [path, bytes] : content) {
      const bool folder = path.ends_with('/');
      const std::string name = folder ? path.substr(0, path.size() - 1) : path;
      auto inode = std::make_shared<Inode>(Inode{bytes, bytes, {}, folder});
      names_[name] = inode;
      synced_names_[name] = std::move(inode);
    }
  }
  SimulatedDisk() = default;

  Content content() const {
    Content all;
    for (const auto& [path, inode] : names_) all[inode->folder ? path + "/" : path] = inode->bytes;
    return all;
  }
  std::string content(const std::string& path) const { return names_.at(path)->bytes; }
  void set_content(const std::string& path, std::string bytes) {
    names_[path] = std::make_shared<Inode>(Inode{bytes, bytes, {}, false});
    synced_names_[path] = names_[path];
  }

  std::unique_ptr<DiskFile> open(const std::string& path) override {
    count(DiskCall::open, path);
    if (!names_.contains(path)) throw_io_error("open", path, ENOENT);
    return std::make_unique<File>(*this, path, names_[path]);
  }
  std::unique_ptr<DiskFile> create(const std::string& path) override {
    count(DiskCall::create, path);
    change_names({{path, std::make_shared<Inode>()}});
    return std::make_unique<File>(*this, path, names_[path]);
  }
  void rename(const std::string& from, const std::string& to) override {
    count(DiskCall::rename, to);
    if (!names_.contains(from)) throw_io_error("rename", from, ENOENT);
    change_names({{to, names_[from]}, {from, nullptr}});
  }
  void remove(const std::string& path) override {
    const std::scoped_lock lock(mutex_);
    count(DiskCall::remove, path);
    if (names_.contains(path)) change_names({{path, nullptr}});
  }
  void link(const std::string& from, const std::string& to) override {
    count(DiskCall::create, to);
    if (!names_.contains(from)) throw_io_error("link", from, ENOENT);
    if (names_.contains(to)) throw_io_error("link", to, EEXIST);
    change_names({{to, names_[from]}});
  }
  bool exists(const std::string& path) override {
    count_name(path);
    return names_.contains(path);
  }
  std::vector<std::string> list(const std::string& folder) override {
    count_name(folder);
    std::vector<std::string> found;
    for (const auto& [path, inode] : names_) {
      if (parent_of(path) == folder) found.push_back(path.substr(folder.size() + 1));
    }
    return found;
  }
  // Only what a crash may leave of it is kept: any path can be written to.
  void make_folder(const std::string& folder) override {
    if (dead_) throw Crash();
    count_name(folder);
    make_folders(folder);
  }
  void sync_folder(const std::string& folder) override {
    count(DiskCall::sync_folder, folder);
    for (NameChange& change : changes_) {
      std::erase_if(change, [&](const auto& entry) { return parent_of(entry.first) == folder; });
    }
    std::erase_if(changes_, [](const NameChange& change) { return change.empty(); });
    std::erase_if(synced_names_, [&](const auto& entry) { return parent_of(entry.first) == folder; });
    for (const auto& [path, inode] : names_) {
      if (parent_of(path) == folder) synced_names_[path] = inode;
    }
    changed();
  }
  void sync_file(const std::string& path) override { open(path)->sync(); }
  void truncate(const std::string& path, int64_t bytes) {
    count(DiskCall::write, path);
    Inode& inode = *names_.at(path);
    inode.bytes.resize(static_cast<size_t>(bytes));
    inode.pending.push_back({bytes, "", true});
    changed();
  }
  int64_t free_bytes(const std::string&) override { return capacity_ - used(); }
  std::unique_ptr<DiskLock> try_lock(const std::string& path, LockKind kind) override {
    if (dead_) throw Crash();
    count_name(path);
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
  struct Write {
    int64_t offset = 0;  // of a cut: the new size
    std::string bytes;
    bool cut = false;
  };
  struct Inode {
    std::string bytes;
    std::string synced;
    std::vector<Write> pending;  // since then
    bool folder = false;
  };
  using NameChange = std::vector<std::pair<std::string, std::shared_ptr<Inode>>>;  // null: the name goes

  class File final : public DiskFile {
   public:
    File(SimulatedDisk& disk, const std::string& path, std::shared_ptr<Inode> inode)
        : DiskFile(path), disk_(disk), inode_(std::move(inode)) {}
    int64_t size() const override { return static_cast<int64_t>(inode_->bytes.size()); }
    void reserve(int64_t bytes) override {
      const std::scoped_lock lock(disk_.mutex_);
      disk_.count(DiskCall::reserve, path());
      if (bytes > disk_.free_bytes("")) throw_io_error("reserve room for", path(), ENOSPC);
    }
    void sync() override {
      const std::scoped_lock lock(disk_.mutex_);
      disk_.count(DiskCall::sync, path());
      inode_->synced = inode_->bytes;
      inode_->pending.clear();
      disk_.changed();
    }
    std::shared_ptr<const std::byte> map() const override {
      const std::scoped_lock lock(disk_.mutex_);
      disk_.count(DiskCall::open, path());
      // Some bytes more, so that it is aligned as a page is.
      constexpr size_t kPage = 4096;
      auto copy = std::make_shared<std::vector<std::byte>>(inode_->bytes.size() + kPage);
      const auto at = reinterpret_cast<uintptr_t>(copy->data());
      std::byte* const aligned = copy->data() + ((at + kPage - 1) / kPage * kPage - at);
      if (!inode_->bytes.empty()) std::memcpy(aligned, inode_->bytes.data(), inode_->bytes.size());
      return {copy, aligned};
    }

   private:
    int64_t read_some(int64_t offset, void* out, int64_t bytes) const override {
      const std::scoped_lock lock(disk_.mutex_);
      const HalfCall call(disk_, DiskCall::read, path());
      const int64_t some = call.moves(std::clamp<int64_t>(size() - offset, 0, std::min(bytes, disk_.shortest_)));
      if (some > 0) std::memcpy(out, inode_->bytes.data() + offset, static_cast<size_t>(some));
      call.end();
      return some;
    }
    int64_t write_some(int64_t offset, const void* data, int64_t bytes) override {
      const std::scoped_lock lock(disk_.mutex_);
      const HalfCall call(disk_, DiskCall::write, path());
      const int64_t some = call.moves(std::min(bytes, disk_.shortest_));
      const int64_t end = std::max(size(), offset + some);
      if (end - size() > disk_.free_bytes("")) throw_io_error("write", path(), ENOSPC);
      inode_->bytes.resize(static_cast<size_t>(end));
      std::memcpy(inode_->bytes.data() + offset, data, static_cast<size_t>(some));
      inode_->pending.push_back({offset, std::string(static_cast<const char*>(data), static_cast<size_t>(some)), false});
      disk_.changed();
      call.end();
      return some;
    }

    SimulatedDisk& disk_;
    std::shared_ptr<Inode> inode_;
  };

  // A read or write, which a fault may stop before it moves anything, or halfway.
  class HalfCall {
   public:
    HalfCall(SimulatedDisk& disk, DiskCall kind, const std::string& path)
        : disk_(disk), path_(path), half_(disk.is_due(kind) && disk.stops(path)) {}
    int64_t moves(int64_t bytes) const { return half_ && bytes > 1 ? bytes / 2 : bytes; }
    void end() const {
      if (half_) disk_.fail(path_);
    }

   private:
    SimulatedDisk& disk_;
    const std::string& path_;
    bool half_;
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

  static std::string parent_of(const std::string& path) {
    const size_t slash = path.rfind('/');
    return slash == std::string::npos ? "" : path.substr(0, slash);
  }
  // A file is there only while the folders above it are, as far as they were made.
  bool reachable(const std::map<std::string, std::shared_ptr<Inode>>& names, const std::string& path) const {
    for (std::string folder = parent_of(path); !folder.empty(); folder = parent_of(folder)) {
      if (folders_.contains(folder) && !names.contains(folder)) return false;
    }
    return true;
  }
  static std::string torn(const Inode& inode, const std::function<int64_t(int64_t)>& choose) {
    constexpr int64_t kSector = 512;
    std::string bytes = inode.synced;
    const int64_t how = inode.pending.empty() ? 0 : choose(5);
    for (const Write& write : inode.pending) {
      if (how == 0) break;                              // none of them
      if (how > 1 && choose(4) == 0) continue;          // not this one
      if (write.cut) {
        bytes.resize(static_cast<size_t>(write.offset));
        continue;
      }
      const auto size = static_cast<int64_t>(write.bytes.size());
      for (int64_t at = 0; at < size;) {
        const int64_t sector_end = ((write.offset + at) / kSector + 1) * kSector - write.offset;
        const int64_t end = std::min(size, sector_end);
        if (how <= 2 || choose(8) != 0) {
          if (static_cast<int64_t>(bytes.size()) < write.offset + end) {
            bytes.resize(static_cast<size_t>(write.offset + end));
          }
          std::memcpy(bytes.data() + write.offset + at, write.bytes.data() + at, static_cast<size_t>(end - at));
        }
        at = end;
      }
    }
    return bytes;
  }
  void change_names(NameChange change) {
    for (const auto& [path, inode] : change) {
      if (inode) {
        names_[path] = inode;
        if (inode->folder) folders_.insert(path);
      } else {
        names_.erase(path);
      }
    }
    changes_.push_back(std::move(change));
    changed();
  }
  void changed() {
    if (watch_) watch_();
  }
  // Whether the fault is this call's.
  bool is_due(DiskCall kind) {
    if (dead_) throw Crash();
    if (!fault_ || (fault_->kind && *fault_->kind != kind)) return false;
    return calls_++ == fault_->at;
  }
  void fail(const std::string& path) {
    if (fault_->code == kNoError) return;
    if (fault_->code == 0) {
      dead_ = true;  // until crash()
      throw Crash();
    }
    throw_io_error("use", path, fault_->code);
  }
  // A call that moves bytes fails, unless it is to move half of them first: then true.
  bool stops(const std::string& path) {
    if (!fault_->half) fail(path);
    return fault_->half;
  }
  void count(DiskCall kind, const std::string& path) {
    if (is_due(kind)) fail(path);
  }
  void count_name(const std::string& path) {
    if (fault_ && fault_->names) count(DiskCall::name, path);
  }
  void make_folders(const std::string& folder) {
    if (folder.empty() || names_.contains(folder)) return;
    make_folders(parent_of(folder));
    change_names({{folder, std::make_shared<Inode>(Inode{"", "", {}, true})}});
  }
  int64_t used() const {
    int64_t bytes = 0;
    for (const auto& [path, inode] : names_) bytes += static_cast<int64_t>(inode->bytes.size());
    return bytes;
  }

  std::map<std::string, std::shared_ptr<Inode>> names_;
  std::map<std::string, std::shared_ptr<Inode>> synced_names_;
  std::vector<NameChange> changes_;  // of names, since their folders were synced
  std::set<std::string> folders_;
  std::map<std::string, Held> locked_;
  std::optional<Fault> fault_;
  std::function<void()> watch_;
  std::atomic<bool> dead_ = false;
  std::atomic<int64_t> calls_ = 0;  // steps are read by several threads
  mutable std::recursive_mutex mutex_;  // of files, which several threads read and write
  int64_t capacity_ = INT64_MAX / 2;
  int64_t shortest_ = INT64_MAX;
};

}  // namespace kith::testing
