#include <kith/device.hpp>

#include <kith/error.hpp>

#include "core/cpu_target.hpp"
#include "core/machine_memory.hpp"

#include <fmt/format.h>

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <thread>

namespace kith {
namespace {

std::string cpu_name() {
  constexpr std::string_view kName = "model name";
  const std::string text = system_text("/proc/cpuinfo");
  const size_t line = text.starts_with(kName) ? 0 : text.find("\n" + std::string(kName));
  if (line != std::string::npos) {
    const size_t first = text.find(':', line) + 2;
    return text.substr(first, text.find('\n', first) - first);
  }
  // ARM's list has no names.
  utsname machine;
  return uname(&machine) == 0 ? fmt::format("{} CPU", machine.machine) : "CPU";
}

}  // namespace

Device parse_device(std::string_view name) {
  if (name == "auto") return Device::automatic();
  if (name == "cpu") return Device::cpu();
  if (name == "cuda") return Device::cuda(0);
  if (name.starts_with("cuda:")) {
    const std::string_view digits = name.substr(5);
    int index = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (error == std::errc{} && end == digits.data() + digits.size() && index >= 0) return Device::cuda(index);
  }
  throw InvalidArgument(fmt::format("unknown device '{}'; known are: auto, cpu, cuda, cuda:N", name));
}

std::string name_of(Device device) {
  switch (device.kind) {
    case DeviceKind::automatic: return "auto";
    case DeviceKind::cpu: return "cpu";
    case DeviceKind::cuda: return fmt::format("cuda:{}", device.index);
  }
  return "?";
}

DeviceInfo cpu_info() {
  DeviceInfo info;
  info.device = Device::cpu();
  info.name = cpu_name();
  const int64_t page = sysconf(_SC_PAGESIZE);
  info.memory_total = page * sysconf(_SC_PHYS_PAGES);
  info.memory_free = std::min(info.memory_total, free_host_memory());
  info.threads = static_cast<int>(std::thread::hardware_concurrency());
  apply_cpu_target_from_environment();
  info.instruction_set = cpu_target_name();
  return info;
}

}  // namespace kith
