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
#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace kith {

// A budget for each GPU, made when it is first asked for; or one that stands for all.
class DeviceBudgets {
 public:
  explicit DeviceBudgets(int64_t limit) : limit_(limit) {}
  explicit DeviceBudgets(std::shared_ptr<MemoryBudget> one) : one_(std::move(one)) {}

  const std::shared_ptr<MemoryBudget>& of(int device) {
    if (one_ != nullptr) return one_;
    const std::lock_guard lock(mutex_);
    std::shared_ptr<MemoryBudget>& budget = budgets_[device];  // whose place in a map does not change
    if (budget == nullptr) budget = std::make_shared<MemoryBudget>("device", limit_);
    return budget;
  }

 private:
  const int64_t limit_ = kNoLimit;
  const std::shared_ptr<MemoryBudget> one_;
  std::mutex mutex_;
  std::map<int, std::shared_ptr<MemoryBudget>> budgets_;  // guarded by mutex_
};

void ResourceOptions::validate() const {
  constexpr int kMaxThreads = 4096;
  if (threads < 0 || threads > kMaxThreads) {
    throw InvalidArgument(fmt::format("threads = {}; allowed are 0 (all) to {}", threads, kMaxThreads));
  }
  for (const int64_t limit : {host_memory_limit, device_memory_limit}) {
    if (limit <= 0) throw InvalidArgument(fmt::format("a memory limit of {} bytes; it must be positive", limit));
  }
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

template <typename Edit>
Resources Resources::changed(const Edit& edit) const {
  ResourceOptions options = *options_;
  edit(options);
  Resources copy = *this;
  copy.options_ = std::allocate_shared<const ResourceOptions>(ReusedAllocator<ResourceOptions>(), std::move(options));
  return copy;
}

// Options are this handle's own, since whoever has it may cancel by its token.
Resources::Resources() : Resources(shared_default().changed([](ResourceOptions& options) { options.cancel = {}; })) {}

Resources::Resources(ResourceOptions options) {
  options.validate();
  apply_cpu_target_from_environment();
  // Asked once: the system reads a file for it, which takes longer than a small search.
  static const int hardware = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  pool_ = std::make_shared<ThreadPool>(options.threads > 0 ? options.threads : hardware);
  host_memory_ = std::make_shared<MemoryBudget>("host", options.host_memory_limit);
  device_memory_ = std::make_shared<DeviceBudgets>(options.device_memory_limit);
  options_ = std::make_shared<const ResourceOptions>(std::move(options));
}

const ResourceOptions& Resources::options() const { return *options_; }
Device Resources::device() const { return options_->device; }
int Resources::threads() const { return pool_->threads(); }

const std::shared_ptr<MemoryBudget>& Resources::device_memory(int device) const { return device_memory_->of(device); }
const std::shared_ptr<MemoryBudget>& Resources::device_memory() const {
  return device_memory(device().kind == DeviceKind::cuda ? device().index : 0);
}

Resources Resources::with_device(Device device) const {
  return changed([&](ResourceOptions& options) { options.device = device; });
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
  Resources copy = *this;
  copy.host_memory_ = std::move(host);
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
