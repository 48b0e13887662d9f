// A folder with the finished steps of long work, so that the work can be resumed after a kill.
//
//   manifest    what the work is (work_manifest.hpp)
//   lock        held by the process that works
//   NAME        a finished step (work_step.hpp)
//   NAME.data2  a part of a large step's bytes
//   NAME.part   a step that is being written; what a killed process left behind is removed at the next start
//
// A step whose end is damaged counts as not done, and one whose section is damaged is DamagedStep for who reads it:
// remove it and make it again.
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
#include "io/work_manifest.hpp"
#include "io/work_step.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kith {

// The other parts ended the work while this one waited for a step: WorkFolder::done() returns the result.
class WorkDone : public InvalidState {
 public:
  using InvalidState::InvalidState;
};

class WorkFolder : public StepFolder {
 public:
  // Makes the folder, or goes on with the one that is there. InvalidState where another process works in it that is no
  // other part of the same work; InvalidArgument, with what differs, where it holds other work.
  WorkFolder(Disk& disk, std::string path, const WorkManifest& manifest, const Resources& resources,
             const WorkPart& part = {});

  // Whether work was begun in a folder, and not ended or kept.
  static bool holds_work(Disk& disk, const std::string& path);
  // Removes what a process left that was killed before work began here, or just after it ended. The folder stays, and
  // so does everything in it if it holds work, other files, or a running process.
  static void remove_remains(Disk& disk, const std::string& path);

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
  // The size of the finished steps whose names begin so.
  int64_t stored_bytes(std::string_view beginning) const;

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
  std::string done_name() const;
  void lock();
  void lock_part();
  void leave(bool keep);
  void read_manifest(const WorkManifest& wanted);
  void write_manifest(const WorkManifest& manifest);
  void refuse_foreign() const;
  void remove_leftovers();

  const Resources resources_;
  bool resumed_ = false;
  bool was_clearing_ = false;  // the last part, which was killed
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
