// Shared by all handles and views of an opened collection: the path, connections for reading, and readers' versions.
#pragma once

#include <kith/resources.hpp>

#include "collection/environment.hpp"
#include "collection/schema.hpp"
#include "collection/sqlite.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace kith {

// The number of this process.
int64_t this_process();

// Tells writers in other processes that a version is in use: a file in readers/, locked while this object exists.
class VersionPin {
 public:
  // Null if the folder cannot be written to: then there is no writer.
  static std::unique_ptr<VersionPin> take(Disk& disk, const std::string& folder, int64_t version);
  ~VersionPin();
  VersionPin(const VersionPin&) = delete;
  VersionPin& operator=(const VersionPin&) = delete;

  int64_t process() const { return process_; }  // that took it
  // The oldest version that anybody holds, or `newest`. Removes what killed readers have left.
  static int64_t oldest(Disk& disk, const std::string& folder, int64_t newest);

 private:
  VersionPin(Disk& disk, std::string path, std::unique_ptr<DiskLock> lock);
  Disk& disk_;
  std::string path_;
  std::unique_ptr<DiskLock> lock_;
  int64_t process_ = this_process();
};

class CollectionDirectory {
 public:
  // `immutable`: there is no writer, and the folder may be read-only.
  CollectionDirectory(std::string path, CollectionEnvironment environment, bool immutable);
  ~CollectionDirectory();

  const std::string& path() const { return path_; }  // as it was given
  const std::string& root() const { return root_; }  // the same wherever the process goes
  const CollectionEnvironment& environment() const { return environment_; }
  Disk& disk() const { return *environment_.disk; }
  std::string database() const { return root_ + "/" + kDatabaseName; }
  std::string segments() const { return root_ + "/" + kSegmentsName; }
  std::string readers() const { return root_ + "/" + kReadersName; }
  std::string lock_file() const { return root_ + "/" + kLockName; }

  // Calls use(database) with a connection used by no one else; opens a new one if all are in use.
  template <typename Use>
  auto reading(const Use& use) const {
    const Lease lease(*this);
    return use(*lease.database);
  }
  std::unique_ptr<VersionPin> pin(int64_t version) const;

 private:
  struct Lease {
    explicit Lease(const CollectionDirectory& from);
    ~Lease();
    const CollectionDirectory& directory;
    std::unique_ptr<Database> database;
    int64_t process;
  };

  std::string path_;
  std::string root_;
  CollectionEnvironment environment_;
  bool immutable_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Database>> idle_;
  mutable int64_t process_ = 0;  // whose connections these are: a forked child opens its own
};

}  // namespace kith
