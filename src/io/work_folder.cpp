#include "io/work_folder.hpp"

#include "io/file_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

namespace kith {
namespace {

constexpr std::string_view kManifestName = "manifest";
constexpr std::string_view kLockName = "lock";
constexpr std::string_view kDoneBeginning = "done-";
constexpr std::string_view kLeftBeginning = "left-";
// How long a part that waits looks away.
constexpr std::chrono::milliseconds kShortestLook{20};
constexpr std::chrono::milliseconds kLongestLook{500};

bool is_data(std::string_view name) { return name.find(kDataEnding) != std::string_view::npos; }

// Whether a file says that parts have ended.
bool is_sign(std::string_view name) { return name.starts_with(kDoneBeginning) || name.starts_with(kLeftBeginning); }

// Whether a file may stay behind from before the manifest, or from after it.
bool is_beside_work(std::string_view name) {
  const bool beginning = name.starts_with(kManifestName) && name.ends_with(kPartEnding);
  return beginning || is_sign(name) || name.starts_with(kLockName);
}

}  // namespace

WorkFolder::WorkFolder(Disk& disk, std::string path, const WorkManifest& manifest, const Resources& resources,
                       const WorkPart& part)
    : StepFolder(disk, std::move(path), manifest.hash(), part), resources_(resources) {
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

std::string WorkFolder::done_name() const { return fmt::format("{}of{}", kDoneBeginning, part_.count); }

void WorkFolder::lock() {
  lock_ = disk_.try_lock(path_of(kLockName), part_.alone() ? LockKind::alone : LockKind::shared);
  if (lock_ == nullptr) {
    throw InvalidState(
        fmt::format("another process works in the folder '{}'{}; wait for it, or name another work folder", path_,
                    part_.alone() ? "" : ", and not as a part of the work"));
  }
  if (!part_.alone()) lock_part();
}

// A part has its lock before it looks at those of others, so that of two that begin at once one at least sees the
// other.
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
  throw InvalidArgument(fmt::format(
      "the folder '{}' holds other work: {}; finish that, remove the folder, or name another", path_, differs));
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
    if (!part_.alone()) throw DamagedStep(damaged, name);
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
      throw Unfinished(
          fmt::format("part {} of {} has done its share for now; what is left before it can go on: {}. Run it "
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

}  // namespace kith
