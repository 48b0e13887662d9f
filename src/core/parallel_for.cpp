#include "core/parallel_for.hpp"

#include <kith/error.hpp>

#include "core/memory_budget.hpp"

#include <algorithm>
#include <ctime>

namespace kith {
namespace {

constexpr std::chrono::milliseconds kReportInterval{50};

// Polls are frequent and take a few percent of short searches, so a coarse clock (some milliseconds) is used where the
// system has one.
std::chrono::steady_clock::time_point roughly_now() {
#if defined(__linux__)
  timespec now;
  if (clock_gettime(CLOCK_MONOTONIC_COARSE, &now) == 0) {
    return std::chrono::steady_clock::time_point(std::chrono::seconds(now.tv_sec) +
                                                 std::chrono::nanoseconds(now.tv_nsec));
  }
#endif
  return std::chrono::steady_clock::now();
}

}  // namespace

void ProgressMeter::poll() {
  const auto now = roughly_now();
  const bool due = now - last_ >= kReportInterval;
  if (!due && !resources_.options().cancel.requested()) return;
  last_ = now;
  try {
    resources_.check_cancelled();
    resources_.report({stage_, std::min(done_.load(std::memory_order_relaxed), total_), total_});
  } catch (...) {  // a sink may throw too
    cancelled_.store(true, std::memory_order_relaxed);
    throw;
  }
}

void ProgressMeter::checkpoint() {
  if (std::this_thread::get_id() == caller_) {
    poll();
  } else if (cancelled_.load(std::memory_order_relaxed)) {
    throw Cancelled();
  }
}

void ProgressMeter::finish() {
  resources_.check_cancelled();
  resources_.report({stage_, total_, total_});
}

void run_tasks(int64_t tasks, ProgressMeter& meter, const Resources& resources, const ThreadPool::Body& body) {
  if (resources.host_memory()->counts_only()) return;
  meter.poll();
  resources.pool().run(tasks, body, [&] { meter.poll(); });
}

}  // namespace kith
