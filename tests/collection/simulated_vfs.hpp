// SQLite's files on a simulated disk: a VFS of its own for each disk, with the shared memory of the log's index beside it.
//
// It promises to SQLite what the file system of Linux promises it: a write does not damage bytes beside it. As there, the
// first sync of a log by each connection that opened it also syncs the folder, whoever made it.
#pragma once

#include "io/simulated_disk.hpp"

#include <sqlite3.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kith::testing {

class SimulatedVfs {
 public:
  explicit SimulatedVfs(SimulatedDisk& disk) : disk_(disk) {
    static int64_t count = 0;
    name_ = "kith-simulated-" + std::to_string(count++);
    vfs_.iVersion = 2;
    vfs_.szOsFile = sizeof(File);
    vfs_.mxPathname = 512;
    vfs_.zName = name_.c_str();
    vfs_.pAppData = this;
    vfs_.xOpen = open;
    vfs_.xDelete = remove;
    vfs_.xAccess = access;
    vfs_.xFullPathname = [](sqlite3_vfs*, const char* name, int size, char* out) {
      sqlite3_snprintf(size, out, "%s", name);
      return SQLITE_OK;
    };
    vfs_.xRandomness = [](sqlite3_vfs* vfs, int bytes, char* out) {
      auto& self = *static_cast<SimulatedVfs*>(vfs->pAppData);
      for (int i = 0; i < bytes; ++i) out[i] = static_cast<char>((self.random_ = self.random_ * 6364136223846793005ULL + 1) >> 56);
      return bytes;
    };
    vfs_.xSleep = [](sqlite3_vfs*, int microseconds) { return microseconds; };
    vfs_.xCurrentTime = [](sqlite3_vfs*, double* now) {
      *now = 2460000.5;
      return SQLITE_OK;
    };
    vfs_.xGetLastError = [](sqlite3_vfs* vfs, int, char*) { return static_cast<SimulatedVfs*>(vfs->pAppData)->errno_; };
    vfs_.xCurrentTimeInt64 = [](sqlite3_vfs*, sqlite3_int64* now) {
      *now = 212442048000000;
      return SQLITE_OK;
    };
    sqlite3_vfs_register(&vfs_, 0);
  }
  ~SimulatedVfs() { sqlite3_vfs_unregister(&vfs_); }
  SimulatedVfs(const SimulatedVfs&) = delete;
  SimulatedVfs& operator=(const SimulatedVfs&) = delete;

  const std::string& name() const { return name_; }

 private:
  struct File;
  // What all connections of one file share.
  struct Shared {
    std::map<File*, int> locks;
    std::vector<std::unique_ptr<std::array<char, 32768>>> memory;
    std::array<int, SQLITE_SHM_NLOCK> readers{};
    std::array<File*, SQLITE_SHM_NLOCK> alone{};
  };
  struct File : sqlite3_file {
    SimulatedVfs* vfs;
    std::unique_ptr<DiskFile>* file;
    std::string* path;
    bool sync_folder;
    int lock;
    std::array<bool, SQLITE_SHM_NLOCK> shared;
  };

  // Errors of the disk as SQLite's codes.
  template <typename Work>
  static int guarded(SimulatedVfs& vfs, int code, const Work& work) {
    try {
      work();
      return SQLITE_OK;
    } catch (const IoError& error) {
      vfs.errno_ = error.code();
      return error.code() == ENOSPC ? SQLITE_FULL : code;
    } catch (const Crash&) {
      return code;
    } catch (const Error&) {
      return code;
    }
  }
  static SimulatedVfs& self(sqlite3_vfs* vfs) { return *static_cast<SimulatedVfs*>(vfs->pAppData); }
  static File& self(sqlite3_file* file) { return *static_cast<File*>(file); }

  static int open(sqlite3_vfs* base, const char* name, sqlite3_file* out, int flags, int* out_flags) {
    static const sqlite3_io_methods kMethods = methods();
    SimulatedVfs& vfs = self(base);
    File& file = self(out);
    out->pMethods = nullptr;
    if (name == nullptr) return SQLITE_CANTOPEN;
    std::unique_ptr<DiskFile> opened;
    bool fresh = false;
    const int code = guarded(vfs, SQLITE_CANTOPEN, [&] {
      fresh = !vfs.disk_.exists(name);
      if (fresh && (flags & SQLITE_OPEN_CREATE) == 0) throw_io_error("open", name, ENOENT);
      opened = fresh ? vfs.disk_.create(name) : vfs.disk_.open(name);
    });
    if (code != SQLITE_OK) return code;
    file.vfs = &vfs;
    file.file = new std::unique_ptr<DiskFile>(std::move(opened));
    file.path = new std::string(name);
    file.sync_folder = (flags & SQLITE_OPEN_CREATE) != 0 && (flags & (SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL)) != 0;
    file.lock = SQLITE_LOCK_NONE;
    file.shared = {};
    out->pMethods = &kMethods;
    if (out_flags != nullptr) *out_flags = flags;
    return SQLITE_OK;
  }
  static int remove(sqlite3_vfs* base, const char* name, int sync) {
    SimulatedVfs& vfs = self(base);
    return guarded(vfs, SQLITE_IOERR_DELETE, [&] {
      vfs.disk_.remove(name);
      const std::string path = name;
      if (sync != 0) vfs.disk_.sync_folder(path.substr(0, path.rfind('/')));
    });
  }
  static int access(sqlite3_vfs* base, const char* name, int, int* out) {
    SimulatedVfs& vfs = self(base);
    return guarded(vfs, SQLITE_IOERR_ACCESS, [&] { *out = vfs.disk_.exists(name) ? 1 : 0; });
  }

  static sqlite3_io_methods methods() {
    sqlite3_io_methods m{};
    m.iVersion = 2;
    m.xClose = [](sqlite3_file* f) {
      File& file = self(f);
      Shared& shared = file.vfs->shared_[*file.path];
      shared.locks.erase(&file);
      delete file.file;
      delete file.path;
      return SQLITE_OK;
    };
    m.xRead = [](sqlite3_file* f, void* out, int bytes, sqlite3_int64 offset) {
      File& file = self(f);
      bool cut = false;
      const int code = guarded(*file.vfs, SQLITE_IOERR_READ, [&] {
        const int64_t there = std::clamp<int64_t>((*file.file)->size() - offset, 0, bytes);
        cut = there < bytes;
        (*file.file)->read(offset, out, there);
        std::memset(static_cast<char*>(out) + there, 0, static_cast<size_t>(bytes - there));
      });
      return code == SQLITE_OK && cut ? SQLITE_IOERR_SHORT_READ : code;
    };
    m.xWrite = [](sqlite3_file* f, const void* data, int bytes, sqlite3_int64 offset) {
      File& file = self(f);
      return guarded(*file.vfs, SQLITE_IOERR_WRITE, [&] { (*file.file)->write(offset, data, bytes); });
    };
    m.xTruncate = [](sqlite3_file* f, sqlite3_int64 bytes) {
      File& file = self(f);
      return guarded(*file.vfs, SQLITE_IOERR_TRUNCATE, [&] { file.vfs->disk_.truncate(*file.path, bytes); });
    };
    m.xSync = [](sqlite3_file* f, int) {
      File& file = self(f);
      return guarded(*file.vfs, SQLITE_IOERR_FSYNC, [&] {
        (*file.file)->sync();
        if (!file.sync_folder) return;
        file.vfs->disk_.sync_folder(file.path->substr(0, file.path->rfind('/')));
        file.sync_folder = false;
      });
    };
    m.xFileSize = [](sqlite3_file* f, sqlite3_int64* out) {
      *out = (*self(f).file)->size();
      return SQLITE_OK;
    };
    m.xLock = [](sqlite3_file* f, int wanted) {
      File& file = self(f);
      for (const auto& [other, level] : file.vfs->shared_[*file.path].locks) {
        if (other == &file) continue;
        if (level >= SQLITE_LOCK_PENDING || (wanted >= SQLITE_LOCK_RESERVED && level >= SQLITE_LOCK_RESERVED) ||
            (wanted == SQLITE_LOCK_EXCLUSIVE && level >= SQLITE_LOCK_SHARED)) {
          return SQLITE_BUSY;
        }
      }
      file.lock = std::max(file.lock, wanted);
      file.vfs->shared_[*file.path].locks[&file] = file.lock;
      return SQLITE_OK;
    };
    m.xUnlock = [](sqlite3_file* f, int wanted) {
      File& file = self(f);
      file.lock = wanted;
      file.vfs->shared_[*file.path].locks[&file] = wanted;
      return SQLITE_OK;
    };
    m.xCheckReservedLock = [](sqlite3_file* f, int* out) {
      File& file = self(f);
      *out = 0;
      for (const auto& [other, level] : file.vfs->shared_[*file.path].locks) {
        if (level >= SQLITE_LOCK_RESERVED) *out = 1;
      }
      return SQLITE_OK;
    };
    m.xFileControl = [](sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; };
    m.xSectorSize = [](sqlite3_file*) { return 4096; };
    m.xDeviceCharacteristics = [](sqlite3_file*) { return SQLITE_IOCAP_POWERSAFE_OVERWRITE; };
    m.xShmMap = [](sqlite3_file* f, int region, int, int extend, void volatile** out) {
      File& file = self(f);
      auto& memory = file.vfs->shared_[*file.path].memory;
      *out = nullptr;
      if (static_cast<size_t>(region) >= memory.size() && extend == 0) return SQLITE_OK;
      while (static_cast<size_t>(region) >= memory.size()) memory.push_back(std::make_unique<std::array<char, 32768>>());
      *out = memory[static_cast<size_t>(region)]->data();
      return SQLITE_OK;
    };
    m.xShmLock = [](sqlite3_file* f, int first, int count, int flags) {
      File& file = self(f);
      Shared& shared = file.vfs->shared_[*file.path];
      for (auto i = static_cast<size_t>(first); i < static_cast<size_t>(first + count); ++i) {
        if ((flags & SQLITE_SHM_UNLOCK) != 0) continue;
        if (shared.alone[i] != nullptr && shared.alone[i] != &file) return SQLITE_BUSY;
        const int others = shared.readers[i] - (file.shared[i] ? 1 : 0);
        if ((flags & SQLITE_SHM_EXCLUSIVE) != 0 && others > 0) return SQLITE_BUSY;
      }
      for (auto i = static_cast<size_t>(first); i < static_cast<size_t>(first + count); ++i) {
        if ((flags & SQLITE_SHM_UNLOCK) != 0) {
          if (shared.alone[i] == &file) shared.alone[i] = nullptr;
          if (file.shared[i]) --shared.readers[i];
          file.shared[i] = false;
        } else if ((flags & SQLITE_SHM_EXCLUSIVE) != 0) {
          shared.alone[i] = &file;
        } else if (!file.shared[i]) {
          file.shared[i] = true;
          ++shared.readers[i];
        }
      }
      return SQLITE_OK;
    };
    m.xShmBarrier = [](sqlite3_file*) {};
    m.xShmUnmap = [](sqlite3_file* f, int erase) {
      File& file = self(f);
      Shared& shared = file.vfs->shared_[*file.path];
      for (size_t i = 0; i < shared.alone.size(); ++i) {
        if (shared.alone[i] == &file) shared.alone[i] = nullptr;
        if (file.shared[i]) --shared.readers[i];
        file.shared[i] = false;
      }
      if (erase != 0) shared.memory.clear();
      return SQLITE_OK;
    };
    return m;
  }

  SimulatedDisk& disk_;
  std::string name_;
  sqlite3_vfs vfs_{};
  std::map<std::string, Shared> shared_;
  uint64_t random_ = 1;
  int errno_ = 0;
};

}  // namespace kith::testing
