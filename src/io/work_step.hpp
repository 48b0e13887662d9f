// A finished step of work in a folder: sections of bytes, each with its hash.
//
// A step is done when its file has its name: it is written aside, synced and renamed, and the folder synced. It carries
// the hash of the work's manifest, so that files of other work are never mixed in. Sections are verified when they are
// read. The bytes of a large step lie in several files by turns, since one file has one lock.
#pragma once

#include <kith/error.hpp>
#include <kith/work_part.hpp>

#include "io/disk.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kith {

inline constexpr std::string_view kPartEnding = ".part";  // of a step that is being written
inline constexpr std::string_view kDataEnding = ".data";  // of a part of a step's bytes

// Where steps are written: a folder, and what they all carry.
class StepFolder {
 public:
  const std::string& path() const { return path_; }
  // From this many bytes on a step continues in another file; set by tests.
  void divide_steps_by(int64_t bytes) { file_bytes_ = bytes; }
  // Throws IoError, with the number of bytes, if less is free.
  void require_space(int64_t bytes) const;

 protected:
  // `work`: the manifest's hash.
  StepFolder(Disk& disk, std::string path, uint64_t work, const WorkPart& part);

  Disk& disk_;
  const std::string path_;
  const uint64_t hash_;
  const WorkPart part_;

  std::string path_of(std::string_view name) const { return path_ + "/" + std::string(name); }
  std::string data_name(std::string_view name, size_t file) const;  // of a part of a step's bytes
  std::string aside_of(std::string_view name) const;                // the path while it is written
  std::string tag() const;                                          // "2of3"

 private:
  friend class StepWriter;
  int64_t file_bytes_ = int64_t{256} << 20;
};

// A section is not as it was written.
class DamagedStep : public CorruptFile {
 public:
  DamagedStep(const std::string& path, std::string step, int64_t offset, const std::string& reason);
  // The same damage, which says the file, where its reader knows no steps.
  DamagedStep(const CorruptFile& damage, std::string step) : CorruptFile(damage), step_(std::move(step)) {}
  const std::string& step() const { return step_; }

 private:
  std::string step_;
};

// How the bytes of a large step are divided: units of them go to some files in turn. Threads that write neighbouring
// sections then seldom wait for each other, as they do in one file, which the system locks for each write.
struct StepStripes {
  int64_t unit = 0;  // 0: all in one file
  int64_t files = 0;

  bool divided() const { return unit > 0; }
  // The bytes of a file, of `total` in all.
  int64_t bytes_in(int64_t file, int64_t total) const;
  // Calls body(file, offset in it, bytes) for the runs of some bytes.
  void for_runs(int64_t offset, int64_t bytes, const std::function<void(size_t, int64_t, int64_t)>& body) const;
};

// Writes a step, section by section. Without commit() nothing stays.
class StepWriter {
 public:
  // Room for `bytes` is reserved where they are known.
  StepWriter(StepFolder& folder, const std::string& name, int64_t bytes = 0);
  ~StepWriter();
  StepWriter(const StepWriter&) = delete;
  StepWriter& operator=(const StepWriter&) = delete;

  // The number of the section is how many there were before.
  void add(std::span<const std::byte> section);
  // Instead of that: sections of known sizes, for which room is reserved. Each is then put once, in any order, from any
  // thread.
  void lay_out(std::span<const int64_t> bytes);
  void put(int64_t section, std::span<const std::byte> bytes);
  // Sections first .. end - 1, one behind the other.
  void put(int64_t first, int64_t end, std::span<const std::byte> bytes);
  // Also instead of add(): one section that write(file) fills as an empty file of its own, whose format tells when it
  // is damaged. It is read through StepFile::as_file() alone.
  void add_file(const std::function<void(DiskFile&)>& write);
  int64_t sections() const { return static_cast<int64_t>(table_.size()) / 2; }
  void commit();

 private:
  void reserve(DiskFile& file, int64_t bytes) const;

  StepFolder& folder_;
  const std::string name_;
  std::unique_ptr<DiskFile> file_;
  int64_t at_ = 0;
  std::vector<uint64_t> table_;   // bytes and hash of each section
  std::vector<int64_t> offsets_;  // of sections that are laid out
  StepStripes stripes_;
  std::vector<std::unique_ptr<DiskFile>> data_;
};

// A finished step.
class StepFile {
 public:
  const std::string& name() const { return name_; }
  int64_t sections() const { return static_cast<int64_t>(offsets_.size()) - 1; }
  int64_t bytes(int64_t section) const { return offset(section + 1) - offset(section); }
  // Verified: DamagedStep where it is not what was written.
  void read(int64_t section, void* out) const;
  // Sections first .. end - 1, one behind the other: one read.
  void read(int64_t first, int64_t end, void* out) const;
  // A section of values.
  template <typename T>
  std::vector<T> values(int64_t section) const {
    std::vector<T> all(static_cast<size_t>(bytes(section)) / sizeof(T));
    read(section, all.data());
    return all;
  }
  int64_t bytes(int64_t first, int64_t end) const { return offset(end) - offset(first); }
  // Throws DamagedStep, with the file's path, for what no step of this work holds.
  [[noreturn]] void refuse(const std::string& reason) const { throw DamagedStep(file_->path(), name_, 0, reason); }
  // What add_file() wrote, as the file that it was; nothing of it is verified here.
  std::shared_ptr<const DiskFile> as_file() const;
  // The memory that the table of so many sections takes, which no limit counts by itself.
  static constexpr int64_t table_bytes(int64_t sections) { return 16 * sections; }
  // What a step of so many sections takes on the disk beside them.
  static constexpr int64_t end_bytes(int64_t sections) { return table_bytes(sections) + 32; }

 private:
  friend class WorkFolder;
  // `open_data`: a file of its sections, where these have several.
  StepFile(std::unique_ptr<DiskFile> file, std::string name, uint64_t work,
           const std::function<std::shared_ptr<const DiskFile>(size_t)>& open_data);
  int64_t offset(int64_t section) const { return offsets_[static_cast<size_t>(section)]; }
  std::shared_ptr<const DiskFile> file_;
  std::string name_;
  StepStripes stripes_;  // as it was written
  std::vector<std::shared_ptr<const DiskFile>> data_;
  std::vector<int64_t> offsets_;  // one more than sections
  std::vector<uint64_t> hashes_;
};

}  // namespace kith
