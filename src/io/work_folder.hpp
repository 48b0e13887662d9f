// A folder with the finished steps of long work, so that the work can be resumed after a kill.
//
//   manifest    text: what the work is, in lines "key = value", and their hash
//   lock        held by the process that works
//   NAME        a finished step: sections with hashes
//   NAME.data2  a part of a large step's bytes, which lie in several files by turns: one file has one lock
//   NAME.part   a step that is being written; what a killed process left behind is removed at the next start
//
// A step is done when its file has its name: it is written aside, synced and renamed, and the folder synced. Every step
// carries the manifest's hash, so that files of other work are never mixed in. Sections are verified when they are
// read; a step whose end is damaged counts as not done, and one whose section is damaged is DamagedStep for who reads
// it: remove it and make it again.
//
// Several processes may work in one folder, each a part of the work (kith/work_part.hpp). The first makes what there is
// one of, and leads; steps of which there are many are dealt out. Then there are also:
//
//   lock-2of3         held by that part, while all parts share `lock`
//   NAME.2of3.part    a step that it is writing
//   done-of3          what the work came to; the other steps are gone
//   left-2of3         that part has seen it; the last part to see it clears the folder
#pragma once

#include <kith/error.hpp>
#include <kith/resources.hpp>
#include <kith/work_part.hpp>

#include "io/disk.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kith {

// What work is: everything that its result depends on, in an order of its own.
class WorkManifest {
 public:
  // Neither a line break, nor " = " in the key.
  void set(std::string_view key, std::string_view value);
  void set(std::string_view key, int64_t value) { set(key, std::string_view(std::to_string(value))); }

  const std::vector<std::pair<std::string, std::string>>& lines() const { return lines_; }
  const std::string* find(std::string_view key) const;

  std::string text() const;  // as it stands in the file
  uint64_t hash() const;     // of the lines
  // CorruptFile for what is damaged, Unsupported for a newer version.
  static WorkManifest parse(std::string_view text, const std::string& path);

 private:
  std::vector<std::pair<std::string, std::string>> lines_;
};

// A section is not as it was written.
class DamagedStep : public CorruptFile {
 public:
  DamagedStep(const std::string& path, std::string step, int64_t offset, const std::string& reason);
  const std::string& step() const { return step_; }

 private:
  std::string step_;
};

// The other parts ended the work while this one waited for a step: WorkFolder::done() returns the result.
class WorkDone : public InvalidState {
 public:
  using InvalidState::InvalidState;
};

class WorkFolder;

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
  StepWriter(WorkFolder& folder, const std::string& name, int64_t bytes = 0);
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

  WorkFolder& folder_;
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

class WorkFolder {
 public:
  // Makes the folder, or goes on with the one that is there. InvalidState where another process works in it that is no
  // other part of the same work; InvalidArgument, with what differs, where it holds other work.
  WorkFolder(Disk& disk, std::string path, const WorkManifest& manifest, const Resources& resources,
             const WorkPart& part = {});

  // Whether work was begun in a folder, and not ended or kept.
  static bool holds_work(Disk& disk, const std::string& path);
  // Removes what a process left that was killed before work began here, or just after it ended. The folder stays, and so
  // does everything in it if it holds work, other files, or a running process.
  static void remove_remains(Disk& disk, const std::string& path);

  const std::string& path() const { return path_; }
  // Whether earlier work was resumed.
  bool resumed() const { return resumed_; }

  // A finished step, or none; a damaged one is removed, with a log entry. If the work has several parts, throws
  // DamagedStep instead, since the part that made it does not check it again.
  std::optional<StepFile> find(const std::string& name);
  // The same for a step that must exist; otherwise throws DamagedStep, so that it is made again.
  StepFile open(const std::string& name);
  // The names of finished steps that begin so, ascending.
  std::vector<std::string> names(std::string_view beginning) const;
  // Removes a step that is no longer needed, or is damaged.
  void remove(const std::string& name);
  // Deletes all steps, the manifest and the lock; the empty folder stays. The parts' results are deleted last, so that
  // a part that was killed meanwhile finds them when it is restarted.
  void clear();
  // Handles a damaged step, met for the `times`-th time: removes it, so that a process that works alone makes it again.
  // Throws after too many times, and if other parts may already have used it.
  void repair(const DamagedStep& damaged, int times);
  // From this many bytes on a step continues in another file; set by tests.
  void divide_steps_by(int64_t bytes) { file_bytes_ = bytes; }
  // The size of the finished steps whose names begin so.
  int64_t stored_bytes(std::string_view beginning) const;
  // Throws IoError, with the number of bytes, if less is free.
  void require_space(int64_t bytes) const;

  const WorkPart& part() const { return part_; }
  // Whether this process makes the steps that exist only once; a process that works alone does.
  bool leads() const { return part_.number == 1; }
  // Whether it makes the step of this number, of many.
  bool deals(int64_t number) const { return number % part_.count == part_.number - 1; }
  // For a part that does not lead: returns when one of these steps exists.
  void await(const std::vector<std::string>& steps);
  // Returns once nothing is missing, by what is told of it.
  void wait_until(const std::function<std::string()>& missing);

  // The result of the work, once the leading part has ended it.
  std::optional<StepFile> done();
  // Ends the work. The leading part publishes its result, and the others wait for that. Steps are deleted, unless
  // they are kept; the folder itself stays, empty once all parts were here.
  void finish(std::span<const std::byte> told, bool keep);

 private:
  friend class StepWriter;
  std::string data_name(std::string_view name, size_t file) const;
  std::string path_of(std::string_view name) const { return path_ + "/" + std::string(name); }
  std::string aside_of(std::string_view name) const;
  std::string tag() const;  // "2of3"
  std::string done_name() const;
  void lock();
  void lock_part();
  void leave(bool keep);
  void read_manifest(const WorkManifest& wanted);
  void write_manifest(const WorkManifest& manifest);
  void refuse_foreign() const;
  void remove_leftovers();

  Disk& disk_;
  const std::string path_;
  const Resources resources_;
  uint64_t hash_;
  int64_t file_bytes_ = int64_t{256} << 20;
  bool resumed_ = false;
  bool was_clearing_ = false;  // the last part, which was killed
  const WorkPart part_;
  std::unique_ptr<DiskLock> lock_;
  std::unique_ptr<DiskLock> part_lock_;
};

// Calls make(), and repeats it as long as it meets damaged steps.
template <typename Make>
decltype(auto) repairing(WorkFolder& folder, const Make& make) {
  std::map<std::string, int> times;
  for (;;) {
    try {
      return make();
    } catch (const DamagedStep& damaged) {
      folder.repair(damaged, ++times[damaged.step()]);
    }
  }
}

}  // namespace kith
