#include "core/machine_memory.hpp"

#include <kith/error.hpp>

#include "core/byte_size.hpp"

#include <fmt/format.h>

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
};

// The least that a group and those above it leave. A process in a container may see its own group as the uppermost.
int64_t free_in_groups(const std::string& mount, std::string group, const GroupFiles& files) {
  int64_t least = INT64_MAX;
  while (true) {
    const std::string folder = mount + group + (group.ends_with('/') ? "" : "/");
    const std::optional<int64_t> limit = number_in(folder + std::string(files.limit));
    const std::optional<int64_t> used = number_in(folder + std::string(files.used));
    if (limit && used) {
      int64_t cached = 0;
      for (const std::string_view name : files.caches) cached += entry_in(folder + "memory.stat", name).value_or(0);
      least = std::min(least, std::max<int64_t>(*limit - std::max<int64_t>(*used - cached, 0), 0));
    }
    if (group.size() <= 1) return least;
    group.resize(std::max<size_t>(group.rfind('/'), 1));
  }
}

int64_t free_in_groups(const std::string& root) {
  constexpr GroupFiles kFirst{
      "memory.limit_in_bytes", "memory.usage_in_bytes", {"total_inactive_file ", "total_active_file "}};
  constexpr GroupFiles kSecond{"memory.max", "memory.current", {"inactive_file ", "active_file "}};
  std::ifstream file(root + "/proc/self/cgroup");
  int64_t least = INT64_MAX;
  for (std::string line; std::getline(file, line);) {  // number:controllers:/group
    const size_t controllers = line.find(':') + 1;
    const size_t group = line.find(':', controllers) + 1;
    if (controllers == 0 || group == 0 || group >= line.size() || line[group] != '/') continue;
    const std::string name = line.substr(controllers, group - 1 - controllers);
    const std::string path = line.substr(group);
    if (name.empty()) least = std::min(least, free_in_groups(root + "/sys/fs/cgroup", path, kSecond));
    if (name == "memory") least = std::min(least, free_in_groups(root + "/sys/fs/cgroup/memory", path, kFirst));
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
  const int64_t swap = entry_in(path, "SwapFree:").value_or(0);
  return std::min((*available + swap) << 10, free_in_groups(root));
}

void check_machine_has(int64_t bytes, int64_t held, std::string_view purpose) {
  if (bytes < kAskMachineFrom) return;
  const int64_t free = free_host_memory();
  if (free == INT64_MAX) return;
  const int64_t left = std::min(free, free + resident_bytes() - (held - bytes));
  if (bytes <= left) return;
  throw OutOfMemory(fmt::format("not enough host memory for {}: {} needed, {} free on this machine", purpose,
                                format_bytes_up(bytes), format_bytes(std::max<int64_t>(left, 0))),
                    bytes);
}

}  // namespace kith
