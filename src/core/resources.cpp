#include <kith/resources.hpp>

#include <kith/error.hpp>

#include "core/cpu_target.hpp"
#include "core/memory_budget.hpp"
#include "core/reused_memory.hpp"
#include "core/thread_pool.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace kith {

// One budget for each GPU, made at first use; or a single one for all.
class DeviceBudgets {
 public:
  explicit DeviceBudgets(const ResourceOptions& options) : limit_(options.device_memory_limit) {
    for (size_t i = 0; i < options.device_memory_limits.size(); ++i) {
      const Device device = options.devices[i].device;
      if (device.kind == DeviceKind::cuda) limits_[device.index] = options.device_memory_limits[i];
    }
  }
  explicit DeviceBudgets(std::shared_ptr<MemoryBudget> one) : one_(std::move(one)) {}

  const std::shared_ptr<MemoryBudget>& of(int device) {
    if (one_ != nullptr) return one_;
    const std::lock_guard lock(mutex_);
    std::shared_ptr<MemoryBudget>& budget = budgets_[device];  // whose place in a map does not change
    const auto own = limits_.find(device);
    if (budget == nullptr) {
      budget = std::make_shared<MemoryBudget>("device", own == limits_.end() ? limit_ : own->second);
    }
    return budget;
  }

 private:
  const int64_t limit_ = kNoLimit;
  std::map<int, int64_t> limits_;  // of devices that have one of their own
  const std::shared_ptr<MemoryBudget> one_;
  std::mutex mutex_;
  std::map<int, std::shared_ptr<MemoryBudget>> budgets_;  // guarded by mutex_
};

// The parts of several devices, each with threads of its own. They start with its first job.
class PartPools {
 public:
  struct Part {
    Device device;
    int of = 1;  // parts of that device
    std::shared_ptr<ThreadPool> pool;
  };

  PartPools(const std::vector<DeviceParts>& devices, int threads) {
    int count = 0;
    for (const DeviceParts& one : devices) count += one.parts;
    for (const DeviceParts& one : devices) {
      for (int i = 0; i < one.parts; ++i) {
        const int number = static_cast<int>(parts_.size());
        const int own = threads * (number + 1) / count - threads * number / count;
        parts_.push_back({one.device, one.parts, std::make_shared<ThreadPool>(std::max(1, own))});
      }
    }
  }

  const std::vector<Part>& parts() const { return parts_; }

 private:
  std::vector<Part> parts_;
};

void ResourceOptions::validate() const {
  constexpr int kMaxThreads = 4096;
  if (threads < 0 || threads > kMaxThreads) {
    throw InvalidArgument(fmt::format("threads = {}; allowed are 0 (all) to {}", threads, kMaxThreads));
  }
  std::vector<int64_t> limits = {host_memory_limit, device_memory_limit};
  limits.insert(limits.end(), device_memory_limits.begin(), device_memory_limits.end());
  for (const int64_t limit : limits) {
    if (limit <= 0) throw InvalidArgument(fmt::format("a memory limit of {} bytes; it must be positive", limit));
  }
  if (!devices.empty()) (void)parse_devices(name_of(devices));  // what is wrong with them it says
  if (device_memory_limits.empty() || device_memory_limits.size() == devices.size()) return;
  throw InvalidArgument(
      fmt::format("{} device memory limits for {} devices ({}); give one limit, or one for each device",
                  device_memory_limits.size(), devices.size(), devices.empty() ? name_of(device) : name_of(devices)));
}

namespace {

// What all default Resources share, made at first use and never changed: the one exception to "no global state". A
// child process makes its own, as a fork may copy locks in their locked state. Never destroyed: at exit its threads may
// be at work for another thread of the process.
const Resources& shared_default() {
  struct Shared {
    pid_t owner;
    Resources resources;
  };
  static std::atomic<Shared*> current{nullptr};
  Shared* known = current.load(std::memory_order_acquire);
  const pid_t here = getpid();
  if (known != nullptr && known->owner == here) return known->resources;
  auto* fresh = new Shared{here, Resources(ResourceOptions{})};
  if (current.compare_exchange_strong(known, fresh, std::memory_order_acq_rel)) return fresh->resources;
  delete fresh;  // another thread was first
  return known->resources;
}

}  // namespace

namespace {

// The pools of the last few lists of devices, so that an index that is searched by several does not start threads for
// each call. Made anew in a forked child, as shared_default() is.
std::shared_ptr<const PartPools> pools_of(const std::vector<DeviceParts>& devices, int threads) {
  struct Entry {
    std::vector<DeviceParts> devices;
    int threads;
    std::shared_ptr<const PartPools> pools;
  };
  struct Known {
    pid_t owner = getpid();
    std::mutex mutex;
    std::vector<Entry> entries;
  };
  constexpr size_t kKept = 8;
  static std::atomic<Known*> current{nullptr};
  Known* known = current.load(std::memory_order_acquire);
  if (known == nullptr || known->owner != getpid()) {
    auto* fresh = new Known;
    if (current.compare_exchange_strong(known, fresh, std::memory_order_acq_rel)) {
      known = fresh;
    } else {
      delete fresh;  // another thread was first
    }
  }
  const std::lock_guard lock(known->mutex);
  for (const Entry& entry : known->entries) {
    if (entry.devices == devices && entry.threads == threads) return entry.pools;
  }
  if (known->entries.size() == kKept) known->entries.erase(known->entries.begin());
  known->entries.push_back({devices, threads, std::make_shared<const PartPools>(devices, threads)});
  return known->entries.back().pools;
}

// Settles what the options say of several devices; the pools of their parts, or null where there is one.
std::shared_ptr<const PartPools> set_devices(ResourceOptions& options, int threads) {
  if (options.devices.empty()) return nullptr;
  options.device = options.devices.front().device;
  if (options.devices.size() > 1 || options.devices.front().parts > 1) return pools_of(options.devices, threads);
  options.devices.clear();
  options.device_memory_limits.clear();
  return nullptr;
}

// A GPU's free memory. Parts are made one after the other, and asking the driver takes longer than making one.
int64_t free_on(Device device) {
  using Clock = std::chrono::steady_clock;
  struct Asked {
    Device device;
    Clock::time_point when;
    int64_t bytes = kNoLimit;
  };
  thread_local Asked last;
  const Clock::time_point now = Clock::now();
  if (last.device == device && now - last.when < std::chrono::milliseconds(1)) return last.bytes;
  last = {device, now, kNoLimit};
  for (const DeviceInfo& gpu : cuda_devices()) {
    if (gpu.device == device) last.bytes = gpu.memory_free;
  }
  return last.bytes;
}

// The memory that the parts of a device divide: the limit or, without one, the GPU's free memory, since each part would
// otherwise plan with all of it.
int64_t free_for(Device device, int parts, const MemoryBudget& whole) {
  if (parts == 1 || whole.promised() || whole.counts_only()) return whole.available();
  return std::min(whole.available(), free_on(device));
}

}  // namespace

template <typename Edit>
Resources Resources::changed(const Edit& edit) const {
  ResourceOptions options = *options_;
  edit(options);
  Resources copy = *this;
  copy.options_ = std::allocate_shared<const ResourceOptions>(ReusedAllocator<ResourceOptions>(), std::move(options));
  return copy;
}

// Has options of its own, since its owner may cancel by their token.
Resources::Resources() : Resources(shared_default().changed([](ResourceOptions& options) { options.cancel = {}; })) {}

Resources::Resources(ResourceOptions options) {
  options.validate();
  apply_cpu_target_from_environment();
  // Asked once: the system reads a file for it, which takes longer than a small search.
  static const int hardware = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  pool_ = std::make_shared<ThreadPool>(options.threads > 0 ? options.threads : hardware);
  host_memory_ = std::make_shared<MemoryBudget>("host", options.host_memory_limit);
  device_memory_ = std::make_shared<DeviceBudgets>(options);
  part_pools_ = set_devices(options, pool_->threads());
  options_ = std::make_shared<const ResourceOptions>(std::move(options));
}

const ResourceOptions& Resources::options() const { return *options_; }
Device Resources::device() const { return options_->device; }
int Resources::threads() const { return pool_->threads(); }
int64_t Resources::host_memory_left() const { return host_memory_->available(); }

const std::shared_ptr<MemoryBudget>& Resources::device_memory(int device) const { return device_memory_->of(device); }
const std::shared_ptr<MemoryBudget>& Resources::device_memory() const {
  return device_memory(device().kind == DeviceKind::cuda ? device().index : 0);
}

std::vector<DeviceParts> Resources::devices() const {
  return options_->devices.empty() ? std::vector<DeviceParts>{{device()}} : options_->devices;
}
int Resources::parts() const { return part_pools_ == nullptr ? 1 : static_cast<int>(part_pools_->parts().size()); }

Resources Resources::with_device(Device device) const {
  if (options_->device == device && options_->devices.empty() && part_pools_ == nullptr) return *this;
  Resources copy = changed([&](ResourceOptions& options) {
    options.device = device;
    options.devices.clear();
    options.device_memory_limits.clear();
  });
  copy.part_pools_ = nullptr;
  return copy;
}

Resources Resources::with_devices(std::vector<DeviceParts> devices) const {
  std::shared_ptr<const PartPools> pools;
  Resources copy = changed([&](ResourceOptions& options) {
    options.devices = std::move(devices);
    options.device_memory_limits.clear();
    options.validate();
    pools = set_devices(options, threads());
  });
  copy.part_pools_ = std::move(pools);
  return copy;
}

Resources Resources::part(int number) const {
  if (part_pools_ == nullptr) return *this;
  const PartPools::Part& own = part_pools_->parts()[static_cast<size_t>(number)];
  Resources one = changed([&](ResourceOptions& options) {
    options.device = own.device;
    options.devices.clear();
    options.device_memory_limits.clear();
    options.stream = nullptr;
    options.log = {};
    options.progress = {};
    options.interrupted = {};
  });
  one.pool_ = own.pool;
  one.part_pools_ = nullptr;
  one.host_memory_ = std::make_shared<MemoryBudget>(host_memory_, host_memory_->available() / parts());
  if (own.device.kind != DeviceKind::cuda) return one;
  const std::shared_ptr<MemoryBudget>& whole = device_memory(own.device.index);
  one.device_memory_ = std::make_shared<DeviceBudgets>(
      std::make_shared<MemoryBudget>(whole, free_for(own.device, own.of, *whole) / own.of));
  one.spare_device_memory_ = spare_device_memory_ / own.of;
  return one;
}

Resources Resources::with_stream(void* stream) const {
  return changed([&](ResourceOptions& options) { options.stream = stream; });
}

Resources Resources::with_log(LogSink sink) const {
  return changed([&](ResourceOptions& options) { options.log = std::move(sink); });
}

Resources Resources::with_progress(ProgressSink sink) const {
  return changed([&](ResourceOptions& options) { options.progress = std::move(sink); });
}

Resources Resources::with_cancel(CancelToken cancel, std::function<bool()> interrupted) const {
  return changed([&](ResourceOptions& options) {
    options.cancel = std::move(cancel);
    options.interrupted = std::move(interrupted);
  });
}

Resources Resources::with_budgets(std::shared_ptr<MemoryBudget> host, std::shared_ptr<MemoryBudget> device) const {
  // The steps of an operation are planned for one device.
  Resources copy = part_pools_ == nullptr ? *this : with_device(this->device());
  copy.host_memory_ = std::move(host);
  if (device == nullptr) return copy;  // each GPU keeps its own
  copy.device_memory_ = std::allocate_shared<DeviceBudgets>(ReusedAllocator<DeviceBudgets>(), std::move(device));
  return copy;
}

void Resources::log(LogLevel level, std::string_view text) const {
  if (options_->log) options_->log(level, text);
}

void Resources::check_cancelled() const {
  if (options_->cancel.requested() || (options_->interrupted && options_->interrupted())) throw Cancelled();
}

void Resources::report(const Progress& progress) const {
  if (options_->progress) options_->progress(progress);
}

}  // namespace kith
