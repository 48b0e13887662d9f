#include <kith/resources.hpp>

#include <kith/error.hpp>

#include "core/memory_budget.hpp"
#include "core/thread_pool.hpp"

#include <fmt/format.h>

#include <thread>

namespace kith {

struct Resources::Shared {
  explicit Shared(const ResourceOptions& options)
      : pool(options.threads > 0 ? options.threads : static_cast<int>(std::thread::hardware_concurrency())),
        host(std::make_shared<MemoryBudget>("host", options.host_memory_limit)),
        device(std::make_shared<MemoryBudget>("device", options.device_memory_limit)) {}

  ThreadPool pool;
  std::shared_ptr<MemoryBudget> host;
  std::shared_ptr<MemoryBudget> device;
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

Resources::Resources() : Resources(ResourceOptions{}) {}

Resources::Resources(ResourceOptions options) {
  options.validate();
  shared_ = std::make_shared<Shared>(options);
  options_ = std::make_shared<const ResourceOptions>(std::move(options));
}

const ResourceOptions& Resources::options() const { return *options_; }
Device Resources::device() const { return options_->device; }
int Resources::threads() const { return shared_->pool.threads(); }
ThreadPool& Resources::pool() const { return shared_->pool; }
const std::shared_ptr<MemoryBudget>& Resources::host_memory() const { return shared_->host; }
const std::shared_ptr<MemoryBudget>& Resources::device_memory() const { return shared_->device; }

Resources Resources::with_device(Device device) const {
  ResourceOptions changed = *options_;
  changed.device = device;
  Resources copy = *this;
  copy.options_ = std::make_shared<const ResourceOptions>(std::move(changed));
  return copy;
}

Resources Resources::with_progress(ProgressSink sink) const {
  ResourceOptions changed = *options_;
  changed.progress = std::move(sink);
  Resources copy = *this;
  copy.options_ = std::make_shared<const ResourceOptions>(std::move(changed));
  return copy;
}

Resources Resources::with_cancel(CancelToken cancel, std::function<bool()> interrupted) const {
  ResourceOptions changed = *options_;
  changed.cancel = std::move(cancel);
  changed.interrupted = std::move(interrupted);
  Resources copy = *this;
  copy.options_ = std::make_shared<const ResourceOptions>(std::move(changed));
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
