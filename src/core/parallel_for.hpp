// Parallel loops: tasks with cancellation and progress. Every loop over threads is written with these.
#pragma once

#include <kith/resources.hpp>

#include "core/thread_pool.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string_view>
#include <thread>

namespace kith {

// Counts the progress of a stage on any thread, and reports it to the caller's sink on the calling thread.
class ProgressMeter {
 public:
  ProgressMeter(std::string_view stage, int64_t total, const Resources& resources)
      : stage_(stage), total_(total), resources_(resources) {}
  ProgressMeter(std::string_view stage, int64_t total, Resources&& resources) = delete;  // it must outlive the meter

  void add(int64_t amount) { done_.fetch_add(amount, std::memory_order_relaxed); }
  // Reports progress if it is due; throws Cancelled if the caller has cancelled. Calling thread only.
  void poll();
  // For long tasks, on any thread: polls on the calling thread, and throws Cancelled once that one has.
  void checkpoint();
  void finish();

 private:
  std::string_view stage_;
  int64_t total_;
  const Resources& resources_;
  std::atomic<int64_t> done_{0};
  std::atomic<bool> cancelled_{false};
  std::thread::id caller_ = std::this_thread::get_id();
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// Runs body(task, slot) for task in [0, tasks); see ThreadPool::run. Nothing runs where resources only count memory
// (core/footprint.hpp): there is nothing to work on.
void run_tasks(int64_t tasks, ProgressMeter& meter, const Resources& resources, const ThreadPool::Body& body);
template <typename Body>
void parallel_for(int64_t tasks, ProgressMeter& meter, const Resources& resources, const Body& body) {
  run_tasks(tasks, meter, resources, std::cref(body));  // which is not copied
}

}  // namespace kith
