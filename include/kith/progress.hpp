// Progress reports, log entries and cancellation of long operations.
#pragma once

#include <kith/export.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

namespace kith {

struct Progress {
  std::string_view stage;  // "search", "read", ...
  int64_t done = 0;
  int64_t total = 0;
};

// Called on the thread that called Kith, at most every 50 ms and once at the end of a stage. If several threads use one
// Resources, its sinks may be called concurrently.
using ProgressSink = std::function<void(const Progress&)>;

// precision: a warning that rounding f64 vectors to f32 may change which of them are nearest.
enum class LogLevel : uint8_t { debug, info, warning, precision };
using LogSink = std::function<void(LogLevel, std::string_view)>;

// Copies share one flag. Any thread may request cancellation; the running call then soon throws Cancelled.
class CancelToken {
 public:
  CancelToken() : flag_(std::make_shared<std::atomic<bool>>(false)) {}
  void request() const { flag_->store(true, std::memory_order_relaxed); }
  bool requested() const { return flag_->load(std::memory_order_relaxed); }

 private:
  std::shared_ptr<std::atomic<bool>> flag_;
};

}  // namespace kith
