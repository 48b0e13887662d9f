#include "core/machine_memory.hpp"

#include <kith/error.hpp>

#include "core/byte_size.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <string_view>

namespace kith {
namespace {

// The number that a text begins with.
std::optional<int64_t> number_of(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} ? std::optional<int64_t>(number) : std::nullopt;
}

// Removes and returns the text up to the next `end`, which is removed too.
std::string_view take_until(std::string_view& text, char end) {
  const size_t length = std::min(text.find(end), text.size());
  const std::string_view part = text.substr(0, length);
  text.remove_prefix(std::min(length + 1, text.size()));
  return part;
}

// A file that holds one number; none where there is no such file, or it says "max".
std::optional<int64_t> number_in(const std::string& path) { return number_of(system_text(path)); }

// What follows a name in a file of names and numbers.
std::optional<int64_t> entry_in(const std::string& path, std::string_view name) {
  const std::string text = system_text(path);
  for (std::string_view left = text; !left.empty();) {
    std::string_view line = take_until(left, '\n');
    if (!line.starts_with(name)) continue;
    line.remove_prefix(std::min(line.find_first_of("0123456789", name.size()), line.size()));
    return number_of(line);
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

// Swap that a control group may still use, of the machine's; none if the group does not limit swap. `free`: memory that
// the group may still use.
int64_t free_swap_of(const std::string& folder, const GroupFiles& files, int64_t free, int64_t cached, int64_t machine) {
  const std::string path = folder + std::string(files.swap_limit);
  if (access(path.c_str(), R_OK) != 0) return 0;
  const std::optional<int64_t> limit = number_in(path);
  const std::optional<int64_t> used = number_in(folder + std::string(files.swap_used));
  if (!limit || !used) return machine;  // as much as there is
  const int64_t left = *limit - (files.swap_with_memory ? std::max<int64_t>(*used - cached, 0) : *used);
  return std::clamp<int64_t>(files.swap_with_memory ? left - free : left, 0, machine);
}

// The least memory, swap included, that a control group and its ancestors allow. A process in a container may see its
// own group as the root.
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
  const std::string groups = system_text(root + "/proc/self/cgroup");
  int64_t least = INT64_MAX;
  for (std::string_view left = groups; !left.empty();) {
    std::string_view path = take_until(left, '\n');  // number:controllers:/group
    take_until(path, ':');
    const std::string_view name = take_until(path, ':');
    if (!path.starts_with('/')) continue;
    const std::string group(path);
    if (name.empty()) least = std::min(least, free_in_groups(root + "/sys/fs/cgroup", group, kSecond, swap));
    if (name == "memory") least = std::min(least, free_in_groups(root + "/sys/fs/cgroup/memory", group, kFirst, swap));
  }
  return least;
}

int64_t resident_bytes() {
  const std::string text = system_text("/proc/self/statm");  // pages: all, resident, ...
  std::string_view left = text;
  take_until(left, ' ');
  return number_of(left).value_or(0) * sysconf(_SC_PAGESIZE);
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

std::string system_text(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  std::string text;
  char some[4096];
  while (true) {
    const ssize_t count = read(file, some, sizeof some);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.append(some, static_cast<size_t>(count));
  }
  close(file);
  return text;
}

}  // namespace kith
