// Times of calls by the clocks of the machine.
#pragma once

#include <ctime>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace kith::bench {

inline double clock_seconds(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}
inline double wall_seconds() { return clock_seconds(CLOCK_MONOTONIC); }
// The time of all threads together, which other work on the machine disturbs less.
inline double processor_seconds() { return clock_seconds(CLOCK_PROCESS_CPUTIME_ID); }

struct Seconds {
  double wall = 0;
  double processor = 0;
};

// Since it was made.
class Watch {
 public:
  Seconds seconds() const { return {wall_seconds() - wall_, processor_seconds() - processor_}; }

 private:
  double wall_ = wall_seconds();
  double processor_ = processor_seconds();
};

template <typename Call>
Seconds seconds_of(const Call& call) {
  const Watch watch;
  call();
  return watch.seconds();
}

// The shortest of each clock.
template <typename Call>
Seconds best_seconds(int64_t runs, const Call& call) {
  Seconds best{HUGE_VAL, HUGE_VAL};
  for (int64_t i = 0; i < runs; ++i) {
    const Seconds one = seconds_of(call);
    best = {std::min(best.wall, one.wall), std::min(best.processor, one.processor)};
  }
  return best;
}

}  // namespace kith::bench
