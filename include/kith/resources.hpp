// What a call may use: devices, threads and memory, and where it logs and reports progress.
//
// Resources is a cheap, thread-safe handle: copies share the thread pool and the memory budgets. It is the last
// argument of every call, and no object keeps one. Default-constructed ones share a pool of all hardware threads, which
// starts at first use and stays; a forked child starts its own. Those made from options have a pool of their own.
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
  Device device;                           // automatic: a GPU if that is predicted to be faster, else the CPU
  // Several devices, or parts of one, that share the work of a call (docs/scaling.md); results do not depend on them.
  // Calls that cannot share their work run on the first. Empty: `device`.
  std::vector<DeviceParts> devices = {};
  int threads = 0;                         // 0: one per hardware thread
  int64_t host_memory_limit = kNoLimit;    // bytes that Kith may allocate on the host, results included
  int64_t device_memory_limit = kNoLimit;  // the same for each GPU; shared by its parts
  std::vector<int64_t> device_memory_limits = {};  // or one for each of `devices`
  void* stream = nullptr;  // the cudaStream_t for GPU work; null: a stream of Kith's own, ordered after the default
                           // stream
  LogSink log;             // empty: silent
  ProgressSink progress;
  CancelToken cancel;
  std::function<bool()> interrupted;  // polled on the calling thread; returning true cancels (Ctrl-C in Python)

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
  // The bytes that the host memory limit leaves now.
  int64_t host_memory_left() const;

  // Copies with the same pool and budgets, and another device, stream, sink or token.
  Resources with_device(Device device) const;
  // Parts of devices have thread pools of their own, which share out this one's number of threads.
  Resources with_devices(std::vector<DeviceParts> devices) const;
  Resources with_stream(void* stream) const;
  Resources with_log(LogSink sink) const;
  Resources with_progress(ProgressSink sink) const;
  Resources with_cancel(CancelToken cancel, std::function<bool()> interrupted = {}) const;

  // Internal, down to with_budgets().
  ThreadPool& pool() const { return *pool_; }
  const std::shared_ptr<MemoryBudget>& host_memory() const { return host_memory_; }
  // The budget of a GPU: of the given one, or the one that calls run on, or the first if none was
  // chosen.
  const std::shared_ptr<MemoryBudget>& device_memory(int device) const;
  const std::shared_ptr<MemoryBudget>& device_memory() const;
  // The number of parts of all devices; 1 if calls are not shared.
  int parts() const;
  // The resources of one part: its device, its threads and an equal share of the memory that is free now. It has a
  // stream of its own and no sinks.
  Resources part(int number) const;
  // With the budgets of one operation; `device` is used for every GPU.
  Resources with_budgets(std::shared_ptr<MemoryBudget> host, std::shared_ptr<MemoryBudget> device) const;

  void log(LogLevel level, std::string_view text) const;
  // Throws Cancelled once a stop was requested. Only for the thread that called Kith.
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
