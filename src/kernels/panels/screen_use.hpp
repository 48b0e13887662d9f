// Whether a screen is worth looking at, decided stretch by stretch from what it let through: where that was too much,
// the next stretches go without, twice as many each time.
#pragma once

#include <algorithm>
#include <cstdint>

namespace kith {

class ScreenUse {
 public:
  static constexpr int64_t kStretch = 16;  // panels

  // Screening pays while no more than the share `worthwhile` of what is looked at passes, in whatever unit both are
  // counted.
  explicit ScreenUse(double worthwhile) : worthwhile_(worthwhile) {}

  // How long the next stretch is: after one that let too much through, shorter, as a trial.
  int64_t panels() const { return wait_ > kFirstWait ? kTrial : kStretch; }
  // Asked once before each stretch.
  bool screens_next() {
    if (waiting_ == 0) return true;
    --waiting_;
    return false;
  }
  void count(int64_t screened, int64_t passed) {
    const bool pays = static_cast<double>(passed) <= worthwhile_ * static_cast<double>(screened);
    waiting_ = pays ? 0 : wait_;
    wait_ = pays ? kFirstWait : std::min(2 * wait_, kLongestWait);
  }

 private:
  static constexpr int64_t kTrial = 4;
  static constexpr int64_t kFirstWait = 2;
  static constexpr int64_t kLongestWait = 64;
  double worthwhile_;
  int64_t wait_ = kFirstWait;
  int64_t waiting_ = 0;  // stretches to come without
};

}  // namespace kith
