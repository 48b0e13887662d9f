#include "collection/segment.hpp"

#include <kith/device.hpp>
#include <kith/error.hpp>

#include "collection/host_limit.hpp"
#include "core/machine_memory.hpp"
#include "io/file_error.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <limits>
#include <utility>
#include <vector>

namespace kith {
namespace {

// Index reads and writes the file system itself. Where another disk stands in, its files go through this one.
class ScratchFile {
 public:
  ScratchFile() {
    static std::atomic<int64_t> count{0};
    path_ = (std::filesystem::temp_directory_path() /
             fmt::format("kith-collection-{}-{}.kith", this_process(), count++)).string();
  }
  ~ScratchFile() { ::unlink(path_.c_str()); }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void copy_file(Disk& from, const std::string& source, Disk& to, const std::string& target) {
  const std::unique_ptr<DiskFile> read = from.open(source);
  const std::unique_ptr<DiskFile> write = to.create(target);
  std::vector<std::byte> bytes(static_cast<size_t>(read->size()));
  read->read(0, bytes.data(), read->size());
  write->write(0, bytes.data(), read->size());
}

constexpr int64_t kBesideCodes = 29;  // bytes of a row that a copy for searches keeps beside its values (IndexParams)
// Queries that take as long as making a copy: each compares all rows, or lays out the lists that it opens.
constexpr int64_t kFlatQueries = 16;
constexpr int64_t kIndexQueries = 64;
// An index in memory takes up to so many times its file.
constexpr int64_t kLoadedShare = 3;

}  // namespace

bool searches_copies(const Resources& resources) {
  const DeviceKind kind = resources.device().kind;
  return kind == DeviceKind::cuda || (kind == DeviceKind::automatic && !cuda_devices().empty());
}

std::shared_ptr<const Index> Segment::flat(int64_t queries, const Resources& resources) const {
  const MatrixView view = file_->view();
  if (view.empty()) return nullptr;
  const std::lock_guard lock(mutex_);
  if (flat_ != nullptr) return flat_;
  // The copy has a byte for each value.
  if (!searches_copies(resources) &&
      !copy_pays(asked_, queries, kFlatQueries, view.rows() * (view.cols() + kBesideCodes))) {
    return nullptr;
  }
  IndexParams params;
  params.metric = metric_;
  params.check_finite = false;  // rows were checked when they were added
  auto made = std::make_shared<Index>("Flat", params);
  made->add(view, Ownership::borrow, resources);
  flat_ = std::move(made);
  return flat_;
}

bool Segment::copy_pays(std::atomic<int64_t>& asked, int64_t queries, int64_t enough, int64_t bytes) {
  if (asked.fetch_add(queries) + queries < enough) return false;
  // It must leave room for others: what is mapped may be more than memory holds.
  if (bytes <= free_host_memory() / 4) return true;
  asked = std::numeric_limits<int64_t>::min() / 2;  // never again
  return false;
}

std::shared_ptr<const Index> Segment::open_index(bool mapped, const Resources& resources) const {
  const SegmentRow& entry = file_->entry();
  const std::string path = directory_->segments() + "/" + entry.index_file;
  Disk& disk = directory_->disk();
  const ContainerFile container(disk.open(path));
  if (container.head_hash() != static_cast<uint64_t>(entry.index_hash)) {
    container.corrupt("it is not the index that the collection's database names");
  }
  LoadParams params;
  params.mmap = mapped;
  std::shared_ptr<const Index> loaded;
  if (&disk == &real_disk()) {
    loaded = std::make_shared<const Index>(Index::load(path, params, resources));
  } else {
    const ScratchFile scratch;
    copy_file(disk, path, real_disk(), scratch.path());
    loaded = std::make_shared<const Index>(Index::load(scratch.path(), params, resources));
  }
  if (loaded->size() != entry.rows || loaded->params().metric != metric_) {
    container.corrupt("it is the index of other rows");
  }
  return loaded;
}

SegmentIndex Segment::index(int64_t queries, const Resources& resources) const {
  if (file_->entry().index_file.empty()) return {};
  const bool limited = is_limited(resources);
  const std::lock_guard lock(mutex_);
  if (bad_index_) return {};
  try {
    if (loaded_index_ != nullptr) {
      SegmentIndex found{loaded_index_, {}};
      if (limited && loaded_budget_ != resources.host_memory()) {
        found.counted = HostBuffer(loaded_index_->bytes().host, "an index of the collection", resources);
      }
      return found;
    }
    if (limited) {
      loaded_index_ = open_index(false, resources);
      loaded_budget_ = resources.host_memory();
      return {loaded_index_, {}};
    }
    if (mapped_index_ == nullptr) mapped_index_ = open_index(true, resources);
    const int64_t bytes = kLoadedShare * file_->entry().index_bytes;
    if (!searches_copies(resources) && copy_pays(asked_of_index_, queries, kIndexQueries, bytes)) {
      loaded_index_ = open_index(false, resources);
      loaded_budget_ = nullptr;
      return {loaded_index_, {}};
    }
    return {mapped_index_, {}};
  } catch (const OutOfMemory&) {
    if (limited || mapped_index_ == nullptr) throw;
    asked_of_index_ = std::numeric_limits<int64_t>::min() / 2;  // it is not tried again
    return {mapped_index_, {}};
  } catch (const Cancelled&) {
    throw;
  } catch (const Error& error) {
    bad_index_ = true;
    resources.log(LogLevel::warning,
                  fmt::format("{}; the rows of {} are searched exactly until reindex() builds it again", error.what(),
                              file_->entry().file));
    return {};
  }
}

void Segment::distrust_index(const std::string& reason, const Resources& resources) const {
  const std::lock_guard lock(mutex_);
  if (bad_index_) return;
  bad_index_ = true;
  mapped_index_ = nullptr;
  loaded_index_ = nullptr;
  resources.log(LogLevel::warning,
                fmt::format("{}; the rows of {} are searched exactly until reindex() builds it again", reason,
                            file_->entry().file));
}

WrittenIndexFile write_index_file(const CollectionDirectory& directory, const Index& index, const std::string& name,
                                const Resources& resources) {
  Disk& disk = directory.disk();
  const std::string path = directory.segments() + "/" + name;
  const std::string aside = path + ".part";
  if (&disk == &real_disk()) {
    index.save(aside, resources);  // synced
  } else {
    const ScratchFile scratch;
    index.save(scratch.path(), resources);
    const std::unique_ptr<DiskFile> read = real_disk().open(scratch.path());
    const std::unique_ptr<DiskFile> write = disk.create(aside);
    std::vector<std::byte> bytes(static_cast<size_t>(read->size()));
    read->read(0, bytes.data(), read->size());
    write->write(0, bytes.data(), read->size());
    if (directory.environment().does(DurableStep::sync_segment)) write->sync();
  }
  const ContainerFile container(disk.open(aside));
  const WrittenIndexFile file{container.size(), static_cast<int64_t>(container.head_hash())};
  disk.rename(aside, path);
  return file;
}

}  // namespace kith
