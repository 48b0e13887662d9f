#include "io/work_step.hpp"

#include "core/byte_size.hpp"
#include "core/divide.hpp"
#include "core/start_beside.hpp"
#include "io/container/xxh3.hpp"
#include "io/file_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <future>
#include <utility>

namespace kith {
namespace {

constexpr int64_t kMostFiles = 8;  // of a step
constexpr int64_t kStripeUnit = 32 << 10;

// A step ends with the bytes and the hash of each section, and then with this.
struct StepEnd {
  uint64_t sections = 0;
  uint64_t work = 0;        // the manifest's hash
  uint64_t table_hash = 0;  // of the table, the step's name and the two above
  std::array<char, 8> magic{'k', 'i', 't', 'h', 's', 't', 'e', 'p'};
};
static_assert(sizeof(StepEnd) == 32);
// That of a step whose bytes are divided: two last words of the table say how.
constexpr std::array<char, 8> kDividedMagic{'k', 'i', 't', 'h', 's', 't', 'r', 'p'};

// The first bytes of a file as a file of their own.
class FileBeginning final : public DiskFile {
 public:
  explicit FileBeginning(DiskFile& file) : DiskFile(file.path()), to_(&file) {}
  FileBeginning(std::shared_ptr<const DiskFile> file, int64_t bytes)
      : DiskFile(file->path()), from_(std::move(file)), size_(bytes) {}

  int64_t size() const override { return size_; }
  void reserve(int64_t bytes) override { to_->reserve(bytes); }
  void sync() override {}  // with the step
  std::shared_ptr<const std::byte> map() const override { return from_->map(); }

 protected:
  int64_t read_some(int64_t offset, void* out, int64_t bytes) const override {
    const int64_t some = std::clamp<int64_t>(size_ - offset, 0, bytes);
    if (some > 0) from_->read(offset, out, some);
    return some;
  }
  int64_t write_some(int64_t offset, const void* data, int64_t bytes) override {
    to_->write(offset, data, bytes);
    size_ = std::max(size_, offset + bytes);
    return bytes;
  }

 private:
  const std::shared_ptr<const DiskFile> from_;
  DiskFile* const to_ = nullptr;
  int64_t size_ = 0;
};

uint64_t table_hash(std::span<const uint64_t> table, const std::string& name, const StepEnd& end) {
  Xxh3 hash;
  hash.update(std::as_bytes(table));
  hash.update(std::as_bytes(std::span(name)));
  hash.update(std::as_bytes(std::span(&end.sections, 1)));
  hash.update(std::as_bytes(std::span(&end.work, 1)));
  return hash.digest();
}

}  // namespace

StepFolder::StepFolder(Disk& disk, std::string path, uint64_t work, const WorkPart& part)
    : disk_(disk), path_(std::move(path)), hash_(work), part_(part) {}

std::string StepFolder::tag() const { return fmt::format("{}of{}", part_.number, part_.count); }

std::string StepFolder::data_name(std::string_view name, size_t file) const {
  return std::string(name) + std::string(kDataEnding) + std::to_string(file);
}

std::string StepFolder::aside_of(std::string_view name) const {
  const std::string path = path_of(name);
  return part_.alone() ? fmt::format("{}{}", path, kPartEnding) : fmt::format("{}.{}{}", path, tag(), kPartEnding);
}

void StepFolder::require_space(int64_t bytes) const {
  const int64_t free = disk_.free_bytes(path_);
  if (free >= bytes) return;
  throw IoError(
      fmt::format("not enough space in the work folder '{}': {} ({} bytes) are needed, {} are free; free some, or "
                  "name a folder on another disk, and go on",
                  path_, format_bytes(bytes), bytes, format_bytes(free)),
      path_, ENOSPC);
}

DamagedStep::DamagedStep(const std::string& path, std::string step, int64_t offset, const std::string& reason)
    : CorruptFile(fmt::format("'{}', byte {}: {}", path, offset, reason), path, offset), step_(std::move(step)) {}

int64_t StepStripes::bytes_in(int64_t file, int64_t total) const {
  const int64_t round = unit * files;
  return total / round * unit + std::clamp<int64_t>(total % round - file * unit, 0, unit);
}

void StepStripes::for_runs(int64_t offset, int64_t bytes,
                           const std::function<void(size_t, int64_t, int64_t)>& body) const {
  while (bytes > 0) {
    const int64_t number = offset / unit;
    const int64_t within = offset % unit;
    const int64_t run = std::min(bytes, unit - within);
    body(static_cast<size_t>(number % files), number / files * unit + within, run);
    offset += run;
    bytes -= run;
  }
}

StepWriter::StepWriter(StepFolder& folder, const std::string& name, int64_t bytes)
    : folder_(folder), name_(name), file_(folder.disk_.create(folder.aside_of(name))) {
  reserve(*file_, bytes);
}

void StepWriter::reserve(DiskFile& file, int64_t bytes) const {
  try {
    file.reserve(bytes);
  } catch (const IoError& error) {
    if (error.code() == ENOSPC) folder_.require_space(bytes);  // which says more
    throw;
  }
}

StepWriter::~StepWriter() {
  if (file_ == nullptr) return;
  file_.reset();
  try {
    for (size_t file = 0; file < data_.size(); ++file) {
      data_[file].reset();
      folder_.disk_.remove(folder_.aside_of(folder_.data_name(name_, file)));
    }
    folder_.disk_.remove(folder_.aside_of(name_));
  } catch (...) {  // the next start removes it
  }
}

void StepWriter::add(std::span<const std::byte> section) {
  const auto bytes = static_cast<int64_t>(section.size());
  file_->write(at_, section.data(), bytes);
  at_ += bytes;
  table_.push_back(section.size());
  table_.push_back(xxh3(section));
}

void StepWriter::lay_out(std::span<const int64_t> bytes) {
  for (const int64_t section : bytes) {
    offsets_.push_back(at_);
    at_ += section;
    table_.push_back(static_cast<uint64_t>(section));
    table_.push_back(0);
  }
  const int64_t files = std::min(at_ / folder_.file_bytes_, kMostFiles);
  if (files < 2) return reserve(*file_, at_);
  stripes_ = {std::min(kStripeUnit, divide_up(folder_.file_bytes_, kMostFiles)), files};
  for (int64_t file = 0; file < files; ++file) {
    data_.push_back(folder_.disk_.create(folder_.aside_of(folder_.data_name(name_, static_cast<size_t>(file)))));
  }
  // Beside each other: a file system in memory takes a second for some ten gigabytes.
  std::vector<std::future<void>> reserved;
  for (int64_t file = 0; file < files; ++file) {
    DiskFile& to = *data_[static_cast<size_t>(file)];
    reserved.push_back(start_beside([this, &to, bytes = stripes_.bytes_in(file, at_)] { reserve(to, bytes); }));
  }
  for (std::future<void>& one : reserved) one.get();
  at_ = 0;  // of the table
}

void StepWriter::put(int64_t section, std::span<const std::byte> bytes) { put(section, section + 1, bytes); }

void StepWriter::put(int64_t first, int64_t end, std::span<const std::byte> bytes) {
  const int64_t offset = offsets_[static_cast<size_t>(first)];
  const auto count = static_cast<int64_t>(bytes.size());
  if (stripes_.divided()) {
    const std::byte* from = bytes.data();
    stripes_.for_runs(offset, count, [&](size_t file, int64_t in_file, int64_t run) {
      data_[file]->write(in_file, from, run);
      from += run;
    });
  } else {
    file_->write(offset, bytes.data(), count);
  }
  for (auto section = static_cast<size_t>(first); section < static_cast<size_t>(end); ++section) {
    const auto at = static_cast<size_t>(offsets_[section] - offset);
    table_[2 * section + 1] = xxh3(bytes.subspan(at, table_[2 * section]));
  }
}

void StepWriter::add_file(const std::function<void(DiskFile&)>& write) {
  FileBeginning file(*file_);
  write(file);
  at_ = file.size();
  table_.push_back(static_cast<uint64_t>(at_));
  table_.push_back(0);  // the file has hashes of its own
}

void StepWriter::commit() {
  StepEnd end;
  end.sections = static_cast<uint64_t>(sections());
  end.work = folder_.hash_;
  if (stripes_.divided()) {
    end.magic = kDividedMagic;
    table_.push_back(static_cast<uint64_t>(stripes_.unit));
    table_.push_back(static_cast<uint64_t>(stripes_.files));
    for (size_t file = 0; file < data_.size(); ++file) {
      data_[file]->sync();
      const std::string name = folder_.data_name(name_, file);
      folder_.disk_.rename(folder_.aside_of(name), folder_.path_of(name));
    }
    data_.clear();
  }
  end.table_hash = table_hash(table_, name_, end);
  const auto table_bytes = static_cast<int64_t>(table_.size() * sizeof(uint64_t));
  file_->write(at_, table_.data(), table_bytes);
  file_->write(at_ + table_bytes, &end, sizeof(end));
  file_->sync();
  file_.reset();
  folder_.disk_.rename(folder_.aside_of(name_), folder_.path_of(name_));
  folder_.disk_.sync_folder(folder_.path_);
}

StepFile::StepFile(std::unique_ptr<DiskFile> file, std::string name, uint64_t work,
                   const std::function<std::shared_ptr<const DiskFile>(size_t)>& open_data)
    : file_(std::move(file)), name_(std::move(name)) {
  const auto refuse = [&](const char* reason) { throw DamagedStep(file_->path(), name_, file_->size(), reason); };
  const int64_t size = file_->size();
  StepEnd end;
  if (size < static_cast<int64_t>(sizeof(end))) refuse("the step has no end");
  file_->read(size - static_cast<int64_t>(sizeof(end)), &end, sizeof(end));
  const bool divided = end.magic == kDividedMagic;
  if (!divided && end.magic != StepEnd().magic) refuse("the step has no end");
  if (end.work != work) refuse("the step is of other work");
  const int64_t room = size - static_cast<int64_t>(sizeof(end));
  const int64_t room_of_table = room - (divided ? 16 : 0);
  if (room_of_table < 0 || end.sections > static_cast<uint64_t>(room_of_table) / 16) {
    refuse("the step's table does not fit in it");
  }
  std::vector<uint64_t> table(2 * end.sections + (divided ? 2 : 0));
  const auto table_bytes = static_cast<int64_t>(table.size() * sizeof(uint64_t));
  file_->read(room - table_bytes, table.data(), table_bytes);
  if (table_hash(table, name_, end) != end.table_hash) refuse("the step's table is not as it was written");
  offsets_.push_back(0);
  for (size_t i = 0; i < 2 * end.sections; i += 2) {
    offsets_.push_back(offsets_.back() + static_cast<int64_t>(table[i]));
    hashes_.push_back(table[i + 1]);
  }
  if (!divided) {
    if (offsets_.back() != room - table_bytes) refuse("the step is shorter or longer than its sections");
    return;
  }
  stripes_ = {static_cast<int64_t>(table[table.size() - 2]), static_cast<int64_t>(table.back())};
  if (stripes_.unit < 1 || stripes_.unit > INT64_MAX / kMostFiles || stripes_.files < 2 ||
      stripes_.files > kMostFiles) {
    refuse("the step is not divided as steps are");
  }
  for (int64_t number = 0; number < stripes_.files; ++number) {
    data_.push_back(open_data(static_cast<size_t>(number)));
    if (data_.back() == nullptr || data_.back()->size() != stripes_.bytes_in(number, offsets_.back())) {
      refuse("a part of the step is not there");
    }
  }
}

std::shared_ptr<const DiskFile> StepFile::as_file() const {
  return std::make_shared<const FileBeginning>(file_, bytes(0));
}

void StepFile::read(int64_t section, void* out) const { read(section, section + 1, out); }

void StepFile::read(int64_t first, int64_t end, void* out) const {
  if (stripes_.divided()) {
    auto* to = static_cast<std::byte*>(out);
    stripes_.for_runs(offset(first), bytes(first, end), [&](size_t file, int64_t in_file, int64_t run) {
      data_[file]->read(in_file, to, run);
      to += run;
    });
  } else {
    file_->read(offset(first), out, bytes(first, end));
  }
  const auto* at = static_cast<const std::byte*>(out);
  for (int64_t section = first; section < end; at += bytes(section), ++section) {
    if (xxh3({at, static_cast<size_t>(bytes(section))}) == hashes_[static_cast<size_t>(section)]) continue;
    throw DamagedStep(file_->path(), name_, offset(section),
                      fmt::format("section {} is not as it was written: its hash differs", section));
  }
}

}  // namespace kith
