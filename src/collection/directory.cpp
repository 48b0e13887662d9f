#include "collection/directory.hpp"

#include <kith/error.hpp>

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>

namespace kith {
namespace {

constexpr size_t kMostIdle = 16;

// "12-4711-3": the version, the process, and how many that process had before.
int64_t version_in(const std::string& name) {
  int64_t version = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), version);
  return error == std::errc() && end != name.data() + name.size() && *end == '-' ? version : -1;
}

}  // namespace

int64_t this_process() { return ::getpid(); }

VersionPin::VersionPin(Disk& disk, std::string path, std::unique_ptr<DiskLock> lock)
    : disk_(disk), path_(std::move(path)), lock_(std::move(lock)) {}

std::unique_ptr<VersionPin> VersionPin::take(Disk& disk, const std::string& folder, int64_t version) {
  static std::atomic<int64_t> count{0};
  try {
    disk.make_folder(folder);
    for (;;) {
      std::string path = fmt::format("{}/{}-{}-{}", folder, version, this_process(), count++);
      // A writer that cleans up may have been there first: then another name.
      if (std::unique_ptr<DiskLock> lock = disk.try_lock(path, LockKind::alone)) {
        return std::unique_ptr<VersionPin>(new VersionPin(disk, std::move(path), std::move(lock)));
      }
    }
  } catch (const IoError& error) {
    if (error.code() == EROFS || error.code() == EACCES || error.code() == EPERM) return nullptr;
    throw;
  }
}

VersionPin::~VersionPin() {
  if (process_ != this_process()) return;  // a forked child has only a copy
  try {
    disk_.remove(path_);
  } catch (const Error&) {  // the next writer removes it
  }
}

int64_t VersionPin::oldest(Disk& disk, const std::string& folder, int64_t newest) {
  if (!disk.exists(folder)) return newest;
  int64_t found = newest;
  for (const std::string& name : disk.list(folder)) {
    const int64_t version = version_in(name);
    if (version < 0) continue;
    const std::string path = folder + "/" + name;
    if (!disk.exists(path)) continue;
    if (const std::unique_ptr<DiskLock> lock = disk.try_lock(path, LockKind::alone)) {
      disk.remove(path);  // its reader has exited
    } else {
      found = std::min(found, version);
    }
  }
  return found;
}

CollectionDirectory::CollectionDirectory(std::string path, CollectionEnvironment environment, bool immutable)
    : path_(std::move(path)), root_(path_), environment_(std::move(environment)), immutable_(immutable) {
  if (environment_.disk != &real_disk()) return;
  std::error_code gone;  // the folder that a relative path begins in: then what uses the path says so
  const std::filesystem::path root = std::filesystem::absolute(path_, gone).lexically_normal();
  if (!gone) root_ = root.filename().empty() ? root.parent_path().string() : root.string();
}

CollectionDirectory::~CollectionDirectory() {
  if (process_ == this_process()) return;
  for (std::unique_ptr<Database>& database : idle_) database->abandon();
}

std::unique_ptr<VersionPin> CollectionDirectory::pin(int64_t version) const {
  return immutable_ ? nullptr : VersionPin::take(disk(), readers(), version);
}

CollectionDirectory::Lease::Lease(const CollectionDirectory& from) : directory(from), process(this_process()) {
  {
    const std::lock_guard lock(from.mutex_);
    if (from.process_ != process) {
      for (std::unique_ptr<Database>& idle : from.idle_) idle->abandon();
      from.idle_.clear();
      from.process_ = process;
    }
    if (!from.idle_.empty()) {
      database = std::move(from.idle_.back());
      from.idle_.pop_back();
      return;
    }
  }
  using Open = Database::Open;
  database = std::make_unique<Database>(from.database(), from.immutable_ ? Open::immutable : Open::read,
                                        from.environment_.vfs);
}

CollectionDirectory::Lease::~Lease() {
  const std::lock_guard lock(directory.mutex_);
  if (directory.process_ == process && directory.idle_.size() < kMostIdle) {
    directory.idle_.push_back(std::move(database));
  }
}

}  // namespace kith
