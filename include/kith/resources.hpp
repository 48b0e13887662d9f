// What a call may use: the device, threads, memory limits, and where it logs and reports.
//
// A Resources is a cheap, thread-safe handle: copies share the thread pool and the memory budgets. It is the last
// argument of every call and no object keeps one. All default ones share one pool of all hardware threads, which starts
// at its first use and stays; a forked child makes its own. One with options has a pool of its own.
#pragma once

#include <kith/device.hpp>
#include <kith/export.hpp>
#include <kith/progress.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace kith {

class DeviceBudgets;
class MemoryBudget;
class PartPools;
class ThreadPool;

inline constexpr int64_t kNoLimit = INT64_MAX;

struct ResourceOptions {
  Device device;                           // automatic: the GPU where the plan predicts a gain, else the CPU
  // Several devices that share the work of a call, or parts of one (docs/scaling.md): the results are those of one.
  // Calls that do not share theirs run on the first. Empty: `device` alone.
  std::vector<DeviceParts> devices = {};
  int threads = 0;                         // 0: one per hardware thread
  int64_t host_memory_limit = kNoLimit;    // bytes Kith may allocate on the host, results included
  int64_t device_memory_limit = kNoLimit;  // the same on each GPU, whose parts share it
  std::vector<int64_t> device_memory_limits = {};  // one for each of `devices`, in its stead
  void* stream = nullptr;  // a cudaStream_t on which GPU work is enqueued; null: a stream of Kith's own,
                           // ordered after the default stream
  LogSink log;             // none: silent
  ProgressSink progress;
  CancelToken cancel;
  std::function<bool()> interrupted;  // asked now and then on the calling thread; true cancels (Ctrl-C in Python)

  KITH_EXPORT void validate() const;
};

class KITH_EXPORT Resources {
 public:
  Resources();
  explicit Resources(ResourceOptions options);

  const ResourceOptions& options() const;
  Device device() const;  // the first of several
  std::vector<DeviceParts> devices() const;
  int threads() const;

  // The same pool and budgets with another device, sink or token.
  Resources with_device(Device device) const;
  // Several, whose parts have threads of their own: as many as there are here, divided by the parts.
  Resources with_devices(std::vector<DeviceParts> devices) const;
  Resources with_stream(void* stream) const;
  Resources with_log(LogSink sink) const;
  Resources with_progress(ProgressSink sink) const;
  Resources with_cancel(CancelToken cancel, std::function<bool()> interrupted = {}) const;

  // For Kith's own use.
  ThreadPool& pool() const { return *pool_; }
  const std::shared_ptr<MemoryBudget>& host_memory() const { return host_memory_; }
  // Budget of one GPU. Without an index: of the GPU that calls run on, or of the first if none
  // was chosen.
  const std::shared_ptr<MemoryBudget>& device_memory(int device) const;
  const std::shared_ptr<MemoryBudget>& device_memory() const;
  // The parts of all devices together: 1 where calls are not shared.
  int parts() const;
  // What one of several parts may use: its device, its threads and an equal share of the memory that is left now. It
  // has a stream of its own, and no sink.
  Resources part(int number) const;
  // For one operation: `device` stands for every GPU.
  Resources with_budgets(std::shared_ptr<MemoryBudget> host, std::shared_ptr<MemoryBudget> device) const;

  void log(LogLevel level, std::string_view text) const;
  // Throws Cancelled once a stop was requested. Call from the calling thread.
  void check_cancelled() const;
  void report(const Progress& progress) const;

 private:
  friend struct SpareDeviceMemory;
  template <typename Edit>
  Resources changed(const Edit& edit) const;

  std::shared_ptr<const ResourceOptions> options_;
  std::shared_ptr<ThreadPool> pool_;
  std::shared_ptr<const PartPools> part_pools_;  // null: one device
  std::shared_ptr<MemoryBudget> host_memory_;
  std::shared_ptr<DeviceBudgets> device_memory_;
  int64_t spare_device_memory_ = kNoLimit;
};

}  // namespace kith
