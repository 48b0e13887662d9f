#include <kith/device.hpp>

#include <kith/error.hpp>

#include "core/arm_core_name.hpp"
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
  // ARM's list has numbers.
  if (const std::string core = arm_core_name(text); !core.empty()) return core;
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
  std::string_view meant;
  for (const std::string_view other : {"gpu", "GPU", "gpu:0", "CUDA", "Cuda", "nvidia"}) {
    if (name == other) meant = "; did you mean cuda?";
  }
  if (name == "CPU" || name == "host") meant = "; did you mean cpu?";
  throw InvalidArgument(
      fmt::format("unknown device '{}'; known are: auto, cpu, cuda, cuda:N, "
                  "and where several share a call cuda:0,cuda:1, cuda:all, cpu/4, cuda:0/2{}",
                  name, meant));
}

namespace {

constexpr int kMostParts = 64;

DeviceParts parse_parts(std::string_view name, std::string_view names) {
  const size_t slash = name.find('/');
  DeviceParts made{parse_device(name.substr(0, slash))};
  if (slash == std::string_view::npos) return made;
  const std::string_view digits = name.substr(slash + 1);
  const char* const end = digits.data() + digits.size();
  const auto [read, error] = std::from_chars(digits.data(), end, made.parts);
  if (error != std::errc{} || read != end || made.parts < 1 || made.parts > kMostParts) {
    throw InvalidArgument(fmt::format("device '{}': '{}' is no number of parts; give 1 to {}, as in {}/2", names,
                                      digits, kMostParts, name.substr(0, slash)));
  }
  if (made.device.kind == DeviceKind::automatic) {
    throw InvalidArgument(fmt::format("device '{}': auto has no parts; name a device, as in cpu/2", names));
  }
  return made;
}

void refuse_named_twice(const std::vector<DeviceParts>& devices) {
  for (size_t i = 0; i < devices.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (devices[i].device != devices[j].device) continue;
      throw InvalidArgument(fmt::format("device {0} is named twice in '{1}'; for {2} parts of it write {0}/{2}",
                                        name_of(devices[i].device), name_of(devices),
                                        devices[i].parts + devices[j].parts));
    }
  }
}

}  // namespace

std::vector<DeviceParts> parse_devices(std::string_view names) {
  std::vector<DeviceParts> devices;
  for (size_t begin = 0; begin <= names.size();) {
    const size_t end = std::min(names.find(',', begin), names.size());
    const std::string_view name = names.substr(begin, end - begin);
    begin = end + 1;
    if (name == "cuda:all") {
      const std::vector<DeviceInfo> gpus = cuda_devices();
      if (gpus.empty()) throw InvalidArgument("device 'cuda:all': there is no CUDA device that can be used");
      for (const DeviceInfo& gpu : gpus) devices.push_back({gpu.device});
    } else {
      devices.push_back(parse_parts(name, names));
    }
  }
  const auto is_auto = [](const DeviceParts& part) { return part.device.kind == DeviceKind::automatic; };
  if (devices.size() > 1 && std::any_of(devices.begin(), devices.end(), is_auto)) {
    throw InvalidArgument(fmt::format("device '{}': auto stands alone; name the devices that share calls", names));
  }
  refuse_named_twice(devices);
  return devices;
}

std::string name_of(const std::vector<DeviceParts>& devices) {
  std::string names;
  for (const DeviceParts& one : devices) {
    if (!names.empty()) names += ',';
    names += name_of(one.device);
    if (one.parts != 1) names += fmt::format("/{}", one.parts);
  }
  return names;
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
