#include "run_options.hpp"

#include <kith/byte_size.hpp>
#include <kith/communicator.hpp>
#include <kith/error.hpp>

#include "interrupt.hpp"
#include "process_memory.hpp"
#include "progress_bar.hpp"

#include <fmt/format.h>

#include <sched.h>

#include <algorithm>
#include <mutex>
#include <string_view>
#include <thread>

namespace kith::cli {
namespace {

// The CUDA runtime alone takes some hundred MiB of host memory: under a smaller limit `auto` does not start it.
constexpr int64_t kSmallestLimitForCuda = int64_t{1} << 30;

constexpr int64_t kMebibyte = 1 << 20;
// Variation of the program's own memory between runs.
constexpr int64_t kOwnVaries = kMebibyte;

// The cores that this process may use; mpirun may have bound it to some.
int usable_cores() {
  const int all = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  cpu_set_t cores;
  return sched_getaffinity(0, sizeof(cores), &cores) == 0 ? std::clamp(CPU_COUNT(&cores), 1, all) : all;
}

int thread_count(const RunOptions& options) {
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  if (options.threads > 0) return options.threads;
  return options.ranks == nullptr ? cores : std::clamp(cores / options.ranks_on_host, 1, usable_cores());
}

void check_device(Device device) {
  if (!built_with_cuda()) {
    throw DeviceError(
        fmt::format("--device {}: this build of Kith has no CUDA backend; use cpu or auto", name_of(device)));
  }
  const std::vector<DeviceInfo> gpus = cuda_devices();
  if (std::any_of(gpus.begin(), gpus.end(), [&](const DeviceInfo& gpu) { return gpu.device == device; })) return;
  throw DeviceError(fmt::format("--device {}: this machine has {} usable CUDA device(s); use one of them, cpu or auto",
                                name_of(device), gpus.size()));
}

std::vector<DeviceParts> devices_for(const RunOptions& options) {
  for (const DeviceParts& one : options.devices) {
    if (one.device.kind == DeviceKind::cuda) check_device(one.device);
  }
  if (options.devices.front().device != Device::automatic()) return options.devices;
  const bool too_tight = options.memory_limit && *options.memory_limit < kSmallestLimitForCuda;
  if (too_tight) return {{Device::cpu()}};
  const std::vector<DeviceInfo> gpus = cuda_devices();
  if (gpus.empty()) return {{Device::cpu()}};
  if (options.ranks == nullptr) return options.devices;
  return {{gpus[static_cast<size_t>(options.rank_on_host) % gpus.size()].device}};  // each rank of a machine its own
}

// The library's part of a limit for the whole process.
int64_t library_share(int64_t limit, const RunOptions& options, const std::vector<DeviceParts>& devices) {
  keep_memory_small();
  // Listing devices starts the CUDA runtime, so that own_bytes() sees its memory as resident.
  const bool only_cpu =
      std::all_of(devices.begin(), devices.end(), [](const DeviceParts& one) { return one.device == Device::cpu(); });
  const bool uses_cuda = !only_cpu && !cuda_devices().empty();
  const int64_t own = own_bytes(thread_count(options), uses_cuda);
  if (limit <= own) {
    throw OutOfMemory(
        fmt::format("--memory-limit {} is less than the {} that the program itself takes with {} threads; raise "
                    "the limit or lower --threads",
                    format_bytes(limit), format_bytes_up(own), thread_count(options)),
        own);
  }
  return limit - own;
}

}  // namespace

bool RunOptions::first_rank() const { return ranks == nullptr || ranks->rank() == 0; }

std::string RunOptions::ranks_text() const { return ranks == nullptr ? "" : fmt::format("{} ranks, ", ranks->size()); }

std::vector<std::string> with_resources(const RunOptions& options, const std::function<void(const Resources&)>& work) {
  ProgressBar bar(!options.quiet && options.first_rank());
  std::mutex log_mutex;
  std::vector<std::string> log;
  ResourceOptions resources;
  resources.devices = devices_for(options);
  resources.threads = options.ranks == nullptr ? options.threads : thread_count(options);
  resources.cancel = interrupt_token();
  resources.log = [&](LogLevel level, std::string_view text) {
    const std::lock_guard lock(log_mutex);
    // A search in pieces says the same of each.
    if (level != LogLevel::debug && std::find(log.begin(), log.end(), text) == log.end()) log.emplace_back(text);
  };
  if (bar.enabled()) resources.progress = [&bar](const Progress& progress) { bar.show(progress); };
  if (options.device_memory_limits.size() == 1) resources.device_memory_limit = options.device_memory_limits.front();
  if (options.device_memory_limits.size() > 1) resources.device_memory_limits = options.device_memory_limits;
  if (!options.memory_limit) {
    work(Resources(std::move(resources)));
    return log;
  }

  resources.host_memory_limit = library_share(*options.memory_limit, options, resources.devices);
  const int64_t own = *options.memory_limit - resources.host_memory_limit;
  try {
    work(Resources(std::move(resources)));
  } catch (const OutOfMemory& error) {
    const int64_t least = own + error.bytes_needed() + kOwnVaries;
    const int64_t needed = (least + kMebibyte - 1) / kMebibyte * kMebibyte;
    const bool named = !error.refused().empty();
    std::string text = fmt::format("{} (of --memory-limit {} the program itself takes {}",
                                   named ? error.refused().c_str() : error.what(),
                                   format_bytes(*options.memory_limit), format_bytes(own));
    if (named && needed > *options.memory_limit) {
      text += fmt::format("; --memory-limit {}M would do", needed / kMebibyte);
    }
    throw OutOfMemory(text + ")", needed);
  }
  return log;
}

}  // namespace kith::cli
