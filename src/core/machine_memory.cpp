#include "core/machine_memory.hpp"

#include <kith/error.hpp>

#include "core/byte_size.hpp"

#include <fmt/format.h>

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>

namespace kith {
namespace {

// A file that holds one number; none where there is no such file, or it says "max".
std::optional<int64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  int64_t number = 0;
  if (!(file >> text)) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} ? std::optional<int64_t>(number) : std::nullopt;
}

// What follows a name in a file of names and numbers.
std::optional<int64_t> entry_in(const std::string& path, std::string_view name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name)) continue;
    const size_t at = line.find_first_of("0123456789", name.size());
    int64_t number = 0;
    if (at == std::string::npos) return std::nullopt;
    std::from_chars(line.data() + at, line.data() + line.size(), number);
    return number;
  }
  return std::nullopt;
}

// The names that a version of control groups has for its files.
struct GroupFiles {
  std::string_view limit;
  std::string_view used;
  std::string_view caches[2];  // of files, in memory.stat: they count as used, and can be dropped
  std::string_view swap_limit;
  std::string_view swap_used;
  bool swap_with_memory;  // these two count memory and swap together
};

bool is_there(const std::string& path) { return std::ifstream(path).good(); }

// Swap that a group may still use, of what the machine has; none where the group does not speak of it. `free` is the
// memory that it may use.
int64_t free_swap_of(const std::string& folder, const GroupFiles& files, int64_t free, int64_t cached, int64_t machine) {
  const std::string path = folder + std::string(files.swap_limit);
  if (!is_there(path)) return 0;
  const std::optional<int64_t> limit = number_in(path);
  const std::optional<int64_t> used = number_in(folder + std::string(files.swap_used));
  if (!limit || !used) return machine;  // as much as there is
  const int64_t left = *limit - (files.swap_with_memory ? std::max<int64_t>(*used - cached, 0) : *used);
  return std::clamp<int64_t>(files.swap_with_memory ? left - free : left, 0, machine);
}

// The least that a group and those above it leave, of memory and of so much swap. A process in a container may see its
// own group as the uppermost.
int64_t free_in_groups(const std::string& mount, std::string group, const GroupFiles& files, int64_t swap) {
  int64_t least = INT64_MAX;
  while (true) {
    const std::string folder = mount + group + (group.ends_with('/') ? "" : "/");
    const std::optional<int64_t> limit = number_in(folder + std::string(files.limit));
    const std::optional<int64_t> used = number_in(folder + std::string(files.used));
    if (limit && used) {
      int64_t cached = 0;
      for (const std::string_view name : files.caches) cached += entry_in(folder + "memory.stat", name).value_or(0);
      const int64_t free = std::max<int64_t>(*limit - std::max<int64_t>(*used - cached, 0), 0);
      const int64_t swapped = free_swap_of(folder, files, free, cached, swap);
      least = std::min(least, free > INT64_MAX - swapped ? INT64_MAX : free + swapped);
    }
    if (group.size() <= 1) return least;
    group.resize(std::max<size_t>(group.rfind('/'), 1));
  }
}

int64_t free_in_groups(const std::string& root, int64_t swap) {
  constexpr GroupFiles kFirst{"memory.limit_in_bytes",
                              "memory.usage_in_bytes",
                              {"total_inactive_file ", "total_active_file "},
                              "memory.memsw.limit_in_bytes",
                              "memory.memsw.usage_in_bytes",
                              true};
  constexpr GroupFiles kSecond{
      "memory.max", "memory.current", {"inactive_file ", "active_file "}, "memory.swap.max", "memory.swap.current",
      false};
  std::ifstream file(root + "/proc/self/cgroup");
  int64_t least = INT64_MAX;
  for (std::string line; std::getline(file, line);) {  // number:controllers:/group
    const size_t controllers = line.find(':') + 1;
    const size_t group = line.find(':', controllers) + 1;
    if (controllers == 0 || group == 0 || group >= line.size() || line[group] != '/') continue;
    const std::string name = line.substr(controllers, group - 1 - controllers);
    const std::string path = line.substr(group);
    if (name.empty()) least = std::min(least, free_in_groups(root + "/sys/fs/cgroup", path, kSecond, swap));
    if (name == "memory") least = std::min(least, free_in_groups(root + "/sys/fs/cgroup/memory", path, kFirst, swap));
  }
  return least;
}

int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t all = 0;
  int64_t resident = 0;
  file >> all >> resident;
  return file ? resident * sysconf(_SC_PAGESIZE) : 0;
}

}  // namespace

int64_t free_host_memory(const std::string& root) {
  const std::string path = root + "/proc/meminfo";
  const std::optional<int64_t> available = entry_in(path, "MemAvailable:");
  if (!available) return INT64_MAX;
  const int64_t swap = entry_in(path, "SwapFree:").value_or(0) << 10;
  return std::min((*available << 10) + swap, free_in_groups(root, swap));
}

std::string refused_memory(int64_t bytes, int64_t free) {
  if (free < bytes) return fmt::format("{} free on this machine", format_bytes(std::max<int64_t>(free, 0)));
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    return fmt::format("and the process is limited to {} of address space (ulimit -v)",
                       format_bytes(static_cast<int64_t>(limit.rlim_cur)));
  }
  return "which the system refused to this process";
}

void check_machine_has(int64_t bytes, int64_t held, std::string_view purpose) {
  if (bytes < kAskMachineFrom) return;
  const int64_t free = free_host_memory();
  if (free == INT64_MAX) return;
  const int64_t left = std::min(free, free + resident_bytes() - (held - bytes));
  if (bytes <= left) return;
  throw OutOfMemory(fmt::format("not enough host memory for {}: {} needed, {}", purpose, format_bytes_up(bytes),
                                refused_memory(bytes, left)),
                    bytes);
}

}  // namespace kith
