#include "core/parallel_for.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr std::chrono::milliseconds kReportInterval{50};

}  // namespace

void ProgressMeter::poll() {
  if (resources_.options().cancel.requested()) resources_.check_cancelled();
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < kReportInterval) return;
  last_ = now;
  resources_.check_cancelled();
  resources_.report({stage_, std::min(done_.load(std::memory_order_relaxed), total_), total_});
}

void ProgressMeter::finish() {
  resources_.check_cancelled();
  resources_.report({stage_, total_, total_});
}

void parallel_for(int64_t tasks, ProgressMeter& meter, const Resources& resources, const ThreadPool::Body& body) {
  meter.poll();
  resources.pool().run(tasks, body, [&] { meter.poll(); });
}

}  // namespace kith
