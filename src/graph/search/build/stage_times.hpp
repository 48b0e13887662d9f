// Logs how long the stages of a build took, on a single line.
#pragma once

#include <kith/resources.hpp>

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <string_view>

namespace kith {

class StageTimes {
 public:
  // Ends a stage that began at the last call.
  void done(std::string_view stage) {
    const Clock::time_point now = Clock::now();
    line_ += fmt::format("{}{} {:.3f} s", line_.empty() ? "" : ", ", stage,
                         std::chrono::duration<double>(now - last_).count());
    last_ = now;
  }
  void tell(std::string_view what, const Resources& resources) const {
    resources.log(LogLevel::debug, fmt::format("{}: {}", what, line_));
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_ = Clock::now();
  std::string line_;
};

}  // namespace kith
