// What becomes of a query after its walk with a filter: graph_plan.hpp says why. The same on both devices.
#pragma once

#include "core/host_device.hpp"

#include <cstdint>
#include <vector>

namespace kith {

inline constexpr int64_t kWider = 4;

enum class AfterWalk : uint8_t { done, wider, exact };

// What follows a walk whose beam has this many places that the filter keeps; `done`: nothing.
KITH_HOST_DEVICE inline AfterWalk after_walk(int64_t kept_in_beam, int64_t fewest_kept) {
  if (kept_in_beam >= fewest_kept) return AfterWalk::done;
  return kept_in_beam * kWider >= fewest_kept ? AfterWalk::wider : AfterWalk::exact;
}

// The numbers of queries whose walks do not answer them.
struct QueriesLeft {
  std::vector<int64_t> wider;  // are walked again
  std::vector<int64_t> exact;  // are searched exactly

  void add(int64_t query, AfterWalk then) {
    if (then != AfterWalk::done) (then == AfterWalk::wider ? wider : exact).push_back(query);
  }
  void search_all_exactly() {
    exact.insert(exact.end(), wider.begin(), wider.end());
    wider.clear();
  }
};

}  // namespace kith
