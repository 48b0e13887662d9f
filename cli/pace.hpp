// Estimates the remaining time of a stage from its recent speed. First steps are often the slowest (tables, sorting,
// cold caches), and some stages end well before their total (graphs that have reached their recall). So there is no
// estimate at the beginning, and it forgets what was long ago.
#pragma once

#include <cmath>
#include <optional>

namespace kith::cli {

class Pace {
 public:
  // `share` of the stage was done `seconds` after it began. Times and shares do not decrease.
  void at(double seconds, double share) {
    const double passed = seconds - seconds_;
    if (passed > 0) {
      const double speed = (share - share_) / passed;
      // Weights fall by a factor of e every kMemory seconds; until that much time has passed, all of it counts equally.
      const double weight = 1 - std::exp(-passed / std::fmin(kMemory, seconds));
      speed_ = share_ == 0 ? share / seconds : speed_ + weight * (speed - speed_);
    }
    seconds_ = seconds;
    share_ = share;
  }

  std::optional<double> seconds_left() const {
    if (share_ >= 1) return 0;
    if (share_ < kLeastShare || seconds_ < kLeastSeconds || speed_ <= 0) return std::nullopt;
    return (1 - share_) / speed_;
  }

 private:
  static constexpr double kMemory = 5;
  static constexpr double kLeastShare = 0.1;
  static constexpr double kLeastSeconds = 0.5;

  double seconds_ = 0;
  double share_ = 0;
  double speed_ = 0;  // shares a second
};

}  // namespace kith::cli
