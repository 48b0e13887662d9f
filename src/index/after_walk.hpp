// The next step for a query after a walk with a filter; graph_plan.hpp gives the reasons. The same on both devices.
#pragma once

#include "core/host_device.hpp"

#include <cstdint>
#include <vector>

namespace kith {

inline constexpr int64_t kWider = 4;

enum class AfterWalk : uint8_t { done, wider, exact };

// The step after a walk whose beam has `kept_in_beam` places that the filter keeps; `done`: none.
KITH_HOST_DEVICE inline AfterWalk after_walk(int64_t kept_in_beam, int64_t fewest_kept) {
  if (kept_in_beam >= fewest_kept) return AfterWalk::done;
  return kept_in_beam * kWider >= fewest_kept ? AfterWalk::wider : AfterWalk::exact;
}

// The numbers of queries that their walks did not answer.
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
