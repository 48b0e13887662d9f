#include "io/work_folder.hpp"

#include "core/byte_size.hpp"
#include "core/divide.hpp"
#include "core/start_beside.hpp"
#include "io/container/xxh3.hpp"
#include "io/file_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <future>
#include <thread>

namespace kith {
namespace {

constexpr std::string_view kFirstLine = "kith work folder, version ";
constexpr int kWorkVersion = 1;
constexpr std::string_view kHashKey = "hash = ";
constexpr std::string_view kPartEnding = ".part";
constexpr std::string_view kDataEnding = ".data";
constexpr int64_t kMostFiles = 8;  // of a step
constexpr int64_t kStripeUnit = 32 << 10;
constexpr std::string_view kManifestName = "manifest";
constexpr std::string_view kLockName = "lock";
constexpr std::string_view kDoneBeginning = "done-";
constexpr std::string_view kLeftBeginning = "left-";
// How long a part that waits looks away.
constexpr std::chrono::milliseconds kShortestLook{20};
constexpr std::chrono::milliseconds kLongestLook{500};

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

bool is_data(std::string_view name) { return name.find(kDataEnding) != std::string_view::npos; }

// Whether a file says that parts have ended.
bool is_sign(std::string_view name) { return name.starts_with(kDoneBeginning) || name.starts_with(kLeftBeginning); }

// Whether a file may stay behind from before the manifest, or from after it.
bool is_beside_work(std::string_view name) {
  const bool beginning = name.starts_with(kManifestName) && name.ends_with(kPartEnding);
  return beginning || is_sign(name) || name.starts_with(kLockName);
}

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

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
  hash.update(bytes_of(name));
  hash.update(std::as_bytes(std::span(&end.sections, 1)));
  hash.update(std::as_bytes(std::span(&end.work, 1)));
  return hash.digest();
}

}  // namespace

void WorkManifest::set(std::string_view key, std::string_view value) {
  std::string line(value);
  std::replace(line.begin(), line.end(), '\n', ' ');  // of a path; the lines stay lines
  lines_.emplace_back(key, std::move(line));
}

const std::string* WorkManifest::find(std::string_view key) const {
  const auto at = std::find_if(lines_.begin(), lines_.end(), [&](const auto& line) { return line.first == key; });
  return at == lines_.end() ? nullptr : &at->second;
}

std::string WorkManifest::text() const {
  std::string text = fmt::format("{}{}\n", kFirstLine, kWorkVersion);
  for (const auto& [key, value] : lines_) text += fmt::format("{} = {}\n", key, value);
  return text + fmt::format("{}{:016x}\n", kHashKey, xxh3(bytes_of(text)));
}

uint64_t WorkManifest::hash() const {
  const std::string whole = text();
  return xxh3(bytes_of(whole));
}

WorkManifest WorkManifest::parse(std::string_view text, const std::string& path) {
  constexpr std::string_view kWayOut = "remove the folder to begin anew";
  if (!text.starts_with(kFirstLine)) throw_corrupt(path, 0, fmt::format("this is no work folder's manifest; {}", kWayOut));
  const std::string version(text.substr(kFirstLine.size(), text.find('\n') - kFirstLine.size()));
  if (version != std::to_string(kWorkVersion)) {
    throw Unsupported(fmt::format("'{}' is of version {} of work folders, and this Kith knows version {}; go on with the "
                                  "Kith that began it, or {}",
                                  path, printable(version), kWorkVersion, kWayOut));
  }
  const size_t last = text.rfind(kHashKey);
  const bool whole = last != std::string_view::npos && text[last - 1] == '\n' &&
                     text.substr(last) == fmt::format("{}{:016x}\n", kHashKey, xxh3(bytes_of(text.substr(0, last))));
  if (!whole) throw_corrupt(path, 0, fmt::format("the manifest is damaged: its hash is not that of its lines; {}", kWayOut));
  WorkManifest manifest;
  size_t at = text.find('\n') + 1;
  while (at < last) {
    const size_t end = text.find('\n', at);
    const std::string_view line = text.substr(at, end - at);
    const size_t mark = line.find(" = ");
    if (mark == std::string_view::npos) throw_corrupt(path, static_cast<int64_t>(at), "a line without a value");
    manifest.lines_.emplace_back(line.substr(0, mark), line.substr(mark + 3));
    at = end + 1;
  }
  return manifest;
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

StepWriter::StepWriter(WorkFolder& folder, const std::string& name, int64_t bytes)
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
  if (stripes_.unit < 1 || stripes_.unit > INT64_MAX / kMostFiles || stripes_.files < 2 || stripes_.files > kMostFiles) {
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

WorkFolder::WorkFolder(Disk& disk, std::string path, const WorkManifest& manifest, const Resources& resources,
                       const WorkPart& part)
    : disk_(disk), path_(std::move(path)), resources_(resources), hash_(manifest.hash()), part_(part) {
  part_.validate();
  disk_.make_folder(path_);
  refuse_foreign();
  lock();
  resumed_ = disk_.exists(path_of(kManifestName));
  if (resumed_) read_manifest(manifest);
  was_clearing_ = !resumed_ && !part_.alone() && disk_.exists(path_of(done_name()));
  remove_leftovers();
  if (!resumed_) write_manifest(manifest);
}

std::string WorkFolder::tag() const { return fmt::format("{}of{}", part_.number, part_.count); }

std::string WorkFolder::done_name() const { return fmt::format("{}of{}", kDoneBeginning, part_.count); }

std::string WorkFolder::data_name(std::string_view name, size_t file) const {
  return std::string(name) + std::string(kDataEnding) + std::to_string(file);
}

std::string WorkFolder::aside_of(std::string_view name) const {
  return path_of(name) + (part_.alone() ? "" : "." + tag()) + std::string(kPartEnding);
}

void WorkFolder::lock() {
  lock_ = disk_.try_lock(path_of(kLockName), part_.alone() ? LockKind::alone : LockKind::shared);
  if (lock_ == nullptr) {
    throw InvalidState(fmt::format("another process works in the folder '{}'{}; wait for it, or name another work folder",
                                   path_, part_.alone() ? "" : ", and not as a part of the work"));
  }
  if (!part_.alone()) lock_part();
}

// A part has its lock before it looks at those of others, so that of two that begin at once one at least sees the other.
void WorkFolder::lock_part() {
  const std::string locks = std::string(kLockName) + "-";
  part_lock_ = disk_.try_lock(path_of(locks + tag()), LockKind::alone);
  if (part_lock_ == nullptr) {
    throw InvalidState(fmt::format("part {} of {} is running in the folder '{}'; wait for it, or give another part",
                                   part_.number, part_.count, path_));
  }
  const std::string same = fmt::format("of{}", part_.count);
  for (const std::string& name : disk_.list(path_)) {
    if (!name.starts_with(locks) || name.ends_with(same)) continue;
    if (disk_.try_lock(path_of(name), LockKind::alone) != nullptr) continue;
    throw InvalidState(fmt::format("the folder '{}' is being worked in by part {}, and this is part {}; give the same "
                                   "number of parts to all, or wait",
                                   path_, name.substr(locks.size()), tag()));
  }
}

// Throws if the folder holds foreign files. Steps without a manifest belong to no work.
void WorkFolder::refuse_foreign() const {
  for (const std::string& name : disk_.list(path_)) {
    if (is_beside_work(name) || name == kManifestName) continue;
    if (disk_.exists(path_of(kManifestName))) return;  // another part may have written it just now
    throw InvalidArgument(fmt::format("the folder '{}' is to be a work folder, and holds '{}' but no manifest; name an "
                                      "empty or a new folder",
                                      path_, name));
  }
}

void WorkFolder::remove_leftovers() {
  const std::string same = fmt::format("of{}", part_.count);
  const std::string others = same + std::string(kPartEnding);
  for (const std::string& name : disk_.list(path_)) {
    // Markers of a different number of parts, which never resumed.
    const bool ours = !part_.alone() && name.ends_with(same);
    if (is_sign(name) && !ours) disk_.remove(path_of(name));
    if (part_.alone()) {
      if (name.starts_with(kLockName) && name != kLockName) disk_.remove(path_of(name));
    } else if (name.ends_with(others) && !name.ends_with("." + tag() + std::string(kPartEnding))) {
      continue;  // being written, perhaps
    }
    if (name.ends_with(kPartEnding)) disk_.remove(path_of(name));
    // Data of a step that was not finished, or not wholly removed.
    const bool alone = part_.alone() && is_data(name);
    if (alone && !disk_.exists(path_of(name.substr(0, name.find(kDataEnding))))) disk_.remove(path_of(name));
  }
}

void WorkFolder::write_manifest(const WorkManifest& manifest) {
  const std::string text = manifest.text();
  const std::string aside = aside_of(kManifestName);
  {
    const std::unique_ptr<DiskFile> file = disk_.create(aside);
    file->write(0, text.data(), static_cast<int64_t>(text.size()));
    file->sync();
  }
  disk_.rename(aside, path_of(kManifestName));
  disk_.sync_folder(path_);
}

void WorkFolder::read_manifest(const WorkManifest& wanted) {
  const std::string path = path_of(kManifestName);
  const std::unique_ptr<DiskFile> file = disk_.open(path);
  std::string text(static_cast<size_t>(file->size()), '\0');
  file->read(0, text.data(), file->size());
  const WorkManifest found = WorkManifest::parse(text, path);
  if (found.lines() == wanted.lines()) return;
  std::string differs;
  const auto add = [&](const std::string& line) { differs += (differs.empty() ? "" : "; ") + line; };
  for (const auto& [key, value] : wanted.lines()) {
    const std::string* const before = found.find(key);
    if (before == nullptr) add(fmt::format("{} is {}, and was not there", key, value));
    if (before != nullptr && *before != value) add(fmt::format("{} is {}, and was {}", key, value, printable(*before)));
  }
  for (const auto& [key, value] : found.lines()) {
    if (wanted.find(key) == nullptr) add(fmt::format("{} was {}, and is not there", printable(key), printable(value)));
  }
  if (differs.empty()) differs = "the same lines in another order";
  throw InvalidArgument(fmt::format("the folder '{}' holds other work: {}; finish that, remove the folder, or name another",
                                    path_, differs));
}

std::optional<StepFile> WorkFolder::find(const std::string& name) {
  if (!disk_.exists(path_of(name))) return std::nullopt;
  const auto open_data = [&](size_t file) -> std::shared_ptr<const DiskFile> {
    const std::string path = path_of(data_name(name, file));
    return disk_.exists(path) ? disk_.open(path) : nullptr;
  };
  try {
    return StepFile(disk_.open(path_of(name)), name, hash_, open_data);
  } catch (const IoError& gone) {  // another part has deleted it just now
    if (gone.code() != ENOENT) throw;
    return std::nullopt;
  } catch (const CorruptFile& damaged) {
    remove(name);
    if (!part_.alone()) throw DamagedStep(path_of(name), name, damaged.offset(), damaged.what());
    resources_.log(LogLevel::warning, fmt::format("{}; the step is made again", damaged.what()));
    return std::nullopt;
  }
}

StepFile WorkFolder::open(const std::string& name) {
  std::optional<StepFile> step = find(name);
  if (!step) throw DamagedStep(path_of(name), name, 0, "the step is not there");
  return std::move(*step);
}

void WorkFolder::repair(const DamagedStep& damaged, int times) {
  constexpr int kMostRepairs = 3;
  if (part_.alone() && times > kMostRepairs) throw DamagedStep(damaged);
  remove(damaged.step());
  if (!part_.alone()) {
    throw InvalidState(fmt::format("{}; the step was removed: end all parts, and start them again", damaged.what()));
  }
  resources_.log(LogLevel::warning, fmt::format("{}; the step is made again", damaged.what()));
}

std::vector<std::string> WorkFolder::names(std::string_view beginning) const {
  std::vector<std::string> found = disk_.list(path_);
  std::erase_if(found, [&](const std::string& name) {
    return !name.starts_with(beginning) || name.ends_with(kPartEnding) || is_data(name);
  });
  return found;
}

bool WorkFolder::holds_work(Disk& disk, const std::string& path) {
  return disk.exists(path + "/" + std::string(kManifestName));
}

void WorkFolder::remove_remains(Disk& disk, const std::string& path) {
  const auto path_of = [&](std::string_view name) { return fmt::format("{}/{}", path, name); };
  if (!disk.exists(path_of(kLockName))) return;
  const std::unique_ptr<DiskLock> lock = disk.try_lock(path_of(kLockName), LockKind::alone);
  const std::vector<std::string> names = disk.list(path);
  if (lock == nullptr || !std::all_of(names.begin(), names.end(), is_beside_work)) return;
  for (const std::string& name : names) {
    if (name != kLockName) disk.remove(path_of(name));
  }
  disk.remove(path_of(kLockName));
}

int64_t WorkFolder::stored_bytes(std::string_view beginning) const {
  int64_t bytes = 0;
  for (const std::string& name : disk_.list(path_)) {
    if (!name.starts_with(beginning) || name.ends_with(kPartEnding)) continue;
    try {
      bytes += disk_.open(path_of(name))->size();
    } catch (const IoError& gone) {  // another part has deleted it just now
      if (gone.code() != ENOENT) throw;
    }
  }
  return bytes;
}

void WorkFolder::remove(const std::string& name) {
  disk_.remove(path_of(name));
  const std::string data = name + std::string(kDataEnding);
  for (const std::string& other : disk_.list(path_)) {
    if (other.starts_with(data) && !other.ends_with(kPartEnding)) disk_.remove(path_of(other));
  }
}

void WorkFolder::await(const std::vector<std::string>& steps) {
  if (leads()) return;
  wait_until([&]() -> std::string {
    const auto there = [&](const std::string& name) { return disk_.exists(path_of(name)); };
    if (std::any_of(steps.begin(), steps.end(), there)) return "";
    return fmt::format("the step '{}' of part 1", steps.front());
  });
}

void WorkFolder::wait_until(const std::function<std::string()>& missing) {
  std::chrono::milliseconds look = kShortestLook;
  bool told = false;
  for (std::string left = missing(); !left.empty(); left = missing()) {
    if (disk_.exists(path_of(done_name()))) throw WorkDone("the other parts have ended the work");
    if (!part_.wait) {
      throw Unfinished(fmt::format("part {} of {} has done its share for now; what is left before it can go on: {}. Run it "
                                   "again once that is done",
                                   part_.number, part_.count, left));
    }
    if (!std::exchange(told, true)) {
      resources_.log(LogLevel::info, fmt::format("part {} of {} waits for {}", part_.number, part_.count, left));
    }
    resources_.check_cancelled();
    std::this_thread::sleep_for(look);
    look = std::min(2 * look, kLongestLook);
  }
}

std::optional<StepFile> WorkFolder::done() { return part_.alone() ? std::nullopt : find(done_name()); }

void WorkFolder::finish(std::span<const std::byte> told, bool keep) {
  if (part_.alone()) {
    if (!keep) clear();
    return;
  }
  if (leads() && !disk_.exists(path_of(done_name()))) {
    StepWriter writer(*this, done_name());
    writer.add(told);
    writer.commit();
  }
  try {
    await({done_name()});
  } catch (const WorkDone&) {
  }
  leave(keep);
}

void WorkFolder::leave(bool keep) {
  const auto stays = [&](const std::string& name) {
    return name == kManifestName || name.starts_with(kLockName) || is_sign(name);
  };
  if (leads() && !keep) {
    for (const std::string& name : disk_.list(path_)) {
      if (!stays(name) && !name.ends_with(kPartEnding)) disk_.remove(path_of(name));  // others may be writing
    }
  }
  try {
    StepWriter(*this, std::string(kLeftBeginning) + tag()).commit();
    if (static_cast<int64_t>(names(kLeftBeginning).size()) < part_.count && !was_clearing_) return;
    if (!keep) return clear();
    for (const std::string& name : disk_.list(path_)) {
      if (stays(name) && name != kManifestName) disk_.remove(path_of(name));
    }
  } catch (const IoError& error) {
    if (error.code() != ENOENT) throw;  // another part was the last as well, and has tidied up
  }
}

void WorkFolder::clear() {
  const auto remove_where = [&](const auto& which) {
    for (const std::string& name : disk_.list(path_)) {
      if (which(name)) disk_.remove(path_of(name));
    }
  };
  // The manifest goes after all steps, which without it would be refused as somebody else's files.
  remove_where([](const std::string& name) { return name != kManifestName && name != kLockName && !is_sign(name); });
  disk_.sync_folder(path_);
  disk_.remove(path_of(kManifestName));
  disk_.sync_folder(path_);
  remove_where([](const std::string& name) { return name.starts_with(kLeftBeginning); });
  remove_where([](const std::string& name) { return name.starts_with(kDoneBeginning); });
  disk_.remove(path_of(kLockName));
  disk_.sync_folder(path_);
}

void WorkFolder::require_space(int64_t bytes) const {
  const int64_t free = disk_.free_bytes(path_);
  if (free >= bytes) return;
  throw IoError(fmt::format("not enough space in the work folder '{}': {} ({} bytes) are needed, {} are free; free some, or "
                            "name a folder on another disk, and go on",
                            path_, format_bytes(bytes), bytes, format_bytes(free)),
                path_, ENOSPC);
}

}  // namespace kith
