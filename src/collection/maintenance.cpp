#include "collection/maintenance.hpp"

#include <kith/error.hpp>

#include "collection/item_rows.hpp"
#include "io/container/container_file.hpp"
#include "io/container/xxh3.hpp"

#include <fmt/format.h>

#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>
#include <utility>
#include <vector>

namespace kith {
namespace {

std::string parent_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

// The database under its name, and all folders above it on the disk.
void name_database(const CollectionDirectory& directory, const std::string& aside) {
  Disk& disk = directory.disk();
  const CollectionEnvironment& environment = directory.environment();
  if (environment.does(DurableStep::sync_new_database)) disk.sync_file(aside);
  disk.rename(aside, directory.database());
  if (environment.does(DurableStep::sync_new_folder)) disk.sync_folder(directory.root());
  if (environment.does(DurableStep::sync_parent_folder)) disk.sync_folder(parent_of(directory.root()));
}

void remove_aside(Disk& disk, const std::string& aside) {
  for (const char* ending : {"", "-wal", "-shm", "-journal"}) disk.remove(aside + ending);
}

// Only what a create() or snapshot() that was killed could have left.
void refuse_other_content(Disk& disk, const CollectionDirectory& directory) {
  if (!disk.exists(directory.root())) return;
  if (disk.exists(directory.database())) {
    throw InvalidArgument(
        fmt::format("'{}' holds a collection already; open it, or give another path", directory.path()));
  }
  for (const std::string& name : disk.list(directory.root())) {
    const bool ours = name == kSegmentsName || name == kReadersName || name == kLockName ||
                      name.starts_with(std::string(kDatabaseName) + ".part");
    if (!ours) {
      throw InvalidArgument(fmt::format("'{}' is not empty: it holds '{}'; give a new or an empty folder",
                                        directory.path(), name));
    }
  }
}

// Collects what is wrong instead of throwing it.
class Problems {
 public:
  explicit Problems(VerifyReport& report) : report_(report) {}
  void add(std::string file, std::string reason) {
    constexpr size_t kMost = 1000;
    if (report_.problems.size() < kMost) report_.problems.push_back({std::move(file), std::move(reason)});
  }
  bool has(const std::string& file) const {
    return std::any_of(report_.problems.begin(), report_.problems.end(), [&](const auto& p) { return p.file == file; });
  }
  template <typename Work>
  void watch(const std::string& file, const Work& work) {
    try {
      work();
    } catch (const CorruptFile& error) {
      add(error.path().empty() ? file : error.path(), error.what());
    } catch (const IoError& error) {
      add(error.path().empty() ? file : error.path(), error.what());
    } catch (const Unsupported& error) {
      add(file, error.what());
    } catch (const InvalidArgument& error) {
      add(file, error.what());
    }
  }

 private:
  VerifyReport& report_;
};

void hash_sections(const ContainerFile& file, const Resources& resources) {
  constexpr int64_t kStep = int64_t{4} << 20;
  HostBuffer buffer(std::min(kStep, file.size()), "a file that is verified", resources);
  for (const Section& section : file.sections()) {
    Xxh3 hash;
    for (int64_t at = 0; at < section.bytes;) {
      resources.check_cancelled();
      const int64_t bytes = std::min(kStep, section.bytes - at);
      file.read_part(section, at, buffer.data(), bytes);
      hash.update({buffer.data(), static_cast<size_t>(bytes)});
      at += bytes;
    }
    file.verify(section, hash.digest());
  }
}

void verify_file(const CollectionDirectory& directory, const std::string& name, int64_t hash, VerifyReport& report,
                 Problems& problems, const Resources& resources) {
  const std::string path = directory.segments() + "/" + name;
  problems.watch(path, [&] {
    const ContainerFile file(directory.disk().open(path));
    ++report.files;
    report.bytes += file.size();
    if (file.head_hash() != static_cast<uint64_t>(hash)) file.corrupt("it is not the file that the database names");
    hash_sections(file, resources);
  });
}

void verify_items(const CollectionState& state, Database& db, VerifyReport& report, Problems& problems,
                  const Resources& resources) {
  const CollectionParams& params = *state.params;
  std::string columns;
  for (const Column& column : params.columns) columns += ", " + quoted(column.name);
  Statement items = db.prepare(fmt::format("SELECT _row, _hash, id, _payload{} FROM items WHERE _added <= {} AND "
                                           "(_removed = 0 OR _removed > {})", columns, state.version, state.version));
  const int64_t bytes = params.dimension * size_of(params.dtype);
  std::vector<std::byte> vector(static_cast<size_t>(bytes));
  int64_t counted = 0;
  while (items.step()) {
    constexpr int64_t kLook = 1024;
    if (++counted % kLook == 0) resources.check_cancelled();
    const int64_t row = items.number(0);
    const std::optional<RowAt> at = state.find(row);
    if (!at || !state.parts[at->part].lives(at->place)) {
      problems.add(db.path(), fmt::format("the vector of the item with row {} is stored nowhere", row));
      continue;
    }
    const StatePart& part = state.parts[at->part];
    // A segment whose sections have their hashes is sound: then it is the database that differs.
    const bool in_segment = part.segment && problems.has(part.segment->file()->path());
    const std::string file = in_segment ? part.segment->file()->path() : db.path();
    problems.watch(file, [&] {
      part.rows->read_vector(at->place, vector.data());
      ItemHash hash;
      bool same = false;
      if (params.ids == IdType::integer) {
        hash.id(items.number(2));
        same = part.rows->number_id(at->place) == items.number(2);
      } else {
        hash.id(items.text(2));
        same = part.rows->text_id(at->place) == items.text(2);
      }
      hash.vector(vector.data(), bytes);
      for (size_t c = 0; c < params.columns.size(); ++c) {
        hash.column(params.columns[c].name, items.value(static_cast<int>(4 + c), params.columns[c].type));
      }
      const std::span<const std::byte> payload = items.blob(3);
      const uint64_t found = hash.end({reinterpret_cast<const char*>(payload.data()), payload.size()});
      if (!same) {
        problems.add(file, fmt::format("the item with row {} has another id here than in the database", row));
      } else if (found != static_cast<uint64_t>(items.number(1))) {
        problems.add(file, fmt::format("the item with row {} is not as it was added: its hash differs", row));
      }
    });
  }
  report.items = counted;
  if (counted != state.size) {
    problems.add(db.path(), fmt::format("it has {} items, and {} vectors of items are stored", counted, state.size));
  }
}

// SQLite's online backup, page by page; it begins again by itself where somebody writes.
void back_up(Database& from, const std::string& to, const std::string& vfs, const Resources& resources) {
  const DatabaseMemory counted(from, resources);
  Database target(to, Database::Open::create, vfs, resources);
  sqlite3_backup* const backup = sqlite3_backup_init(target.get(), "main", from.get(), "main");
  if (backup == nullptr) target.fail(sqlite3_errcode(target.get()), "write");
  constexpr int kPages = 4096;
  int code = SQLITE_OK;
  try {
    do {
      resources.check_cancelled();
      code = sqlite3_backup_step(backup, kPages);
      if (code == SQLITE_BUSY || code == SQLITE_LOCKED) sqlite3_sleep(1);
    } while (code == SQLITE_OK || code == SQLITE_BUSY || code == SQLITE_LOCKED);
  } catch (...) {
    sqlite3_backup_finish(backup);
    throw;
  }
  sqlite3_backup_finish(backup);
  if (code != SQLITE_DONE) target.fail(code, "write");
}

}  // namespace

void refuse_network(const std::string& path) {
  struct statfs info {};
  if (::statfs(path.c_str(), &info) != 0) return;  // whoever uses the path reports the error
  constexpr std::pair<uint64_t, const char*> kNetworks[] = {{0x6969, "NFS"}, {0xff534d42, "SMB"}, {0xfe534d42, "SMB"},
                                                            {0x517b, "SMB"}, {0x5346414f, "AFS"}, {0x00c36400, "Ceph"}};
  for (const auto& [magic, name] : kNetworks) {
    if ((static_cast<uint64_t>(info.f_type) & 0xffffffffU) == magic) {
      throw Unsupported(fmt::format("'{}' lies on a network file system ({}), where SQLite's shared log does not work; "
                                    "keep the collection on a disk of this machine", path, name));
    }
  }
}

void create_directory(const CollectionDirectory& directory, const CollectionParams& params) {
  Disk& disk = directory.disk();
  refuse_other_content(disk, directory);
  disk.make_folder(directory.root());
  disk.make_folder(directory.segments());
  const std::string aside = directory.database() + ".part";
  remove_aside(disk, aside);
  {
    Database db(aside, Database::Open::create, directory.environment().vfs);
    db.run("PRAGMA synchronous=OFF");  // it has no name yet, and is synced as a whole
    create_schema(db, params);
    if (db.text("PRAGMA journal_mode=WAL") != "wal") {
      throw IoError(fmt::format("'{}': SQLite cannot keep its log here (WAL)", aside), aside, EINVAL);
    }
  }
  name_database(directory, aside);
}

VerifyReport verify_state(const CollectionState& state, const Resources& resources) {
  VerifyReport report;
  Problems problems(report);
  const CollectionDirectory& directory = *state.directory;
  for (size_t p = 0; p < state.segments; ++p) {
    const SegmentRow& entry = state.parts[p].segment->entry();
    verify_file(directory, entry.file, entry.hash, report, problems, resources);
    if (!entry.index_file.empty()) {
      verify_file(directory, entry.index_file, entry.index_hash, report, problems, resources);
    }
  }
  problems.watch(directory.database(), [&] {
    state.reading([&](Database& db) {
      const DatabaseMemory counted(db, resources);
      ++report.files;
      report.bytes += directory.disk().open(directory.database())->size();
      Statement check = db.prepare("PRAGMA integrity_check");
      while (check.step()) {
        if (check.text(0) != "ok") problems.add(db.path(), std::string(check.text(0)));
      }
      verify_items(state, db, report, problems, resources);
    });
  });
  return report;
}

void snapshot_directory(const CollectionDirectory& from, const std::string& to, const Resources& resources) {
  const CollectionDirectory target(to, from.environment(), false);
  Disk& disk = from.disk();
  if (target.root().starts_with(from.root() + "/")) {
    throw InvalidArgument(
        fmt::format("'{}' lies inside of the collection '{}'; give a folder elsewhere", to, from.path()));
  }
  refuse_other_content(disk, target);
  disk.make_folder(target.root());
  disk.make_folder(target.segments());
  const std::string aside = target.database() + ".part";
  // A compaction may delete files between the backup and the links: then the database is copied again.
  constexpr int kTries = 100;
  for (int tried = 0;; ++tried) {
    remove_aside(disk, aside);
    from.reading([&](Database& db) { back_up(db, aside, from.environment().vfs, resources); });
    std::vector<SegmentRow> rows;
    {
      Database copied(aside, Database::Open::write, from.environment().vfs, resources);
      check_schema(copied);
      rows = read_segments(copied);
      copied.run("PRAGMA wal_checkpoint(TRUNCATE)");
    }
    std::set<std::string> wanted;
    for (const SegmentRow& row : rows) {
      wanted.insert(row.file);
      if (!row.index_file.empty()) wanted.insert(row.index_file);
    }
    for (const std::string& name : disk.list(target.segments())) {
      if (!wanted.contains(name)) disk.remove(target.segments() + "/" + name);
    }
    try {
      for (const std::string& name : wanted) {
        resources.check_cancelled();
        const std::string path = target.segments() + "/" + name;
        disk.remove(path);
        disk.link(from.segments() + "/" + name, path);
      }
      break;
    } catch (const IoError& error) {
      if (error.code() != ENOENT || tried == kTries) throw;
    }
  }
  if (from.environment().does(DurableStep::sync_segments_folder)) disk.sync_folder(target.segments());
  name_database(target, aside);
}

}  // namespace kith
