// How the nearest of few rows are found for many queries: the coarse step of an index, the centres of a clustering.
// Pure functions, so that any machine can plan, and test plans, for any GPU.
//
// The k-th smallest of the minima of groups of rows is a threshold that at least k rows do not exceed. With few rows
// the groups must be small, or far more than k rows would be looked at; with many they must be large, or the minima
// would not stay in the L2 cache.
#pragma once

#include "kernels/matrix/operand_layout.hpp"
#include "kernels/matrix/product_plan.hpp"

#include <algorithm>
#include <cstdint>

namespace kith {

inline constexpr int64_t kCoarseLeastQueries = 256;  // fewer do not fill the machine with a warp each
inline constexpr int64_t kCoarseMostRows = 65536;    // more have few candidates for so many bits
inline constexpr int64_t kCoarseMostMinima = 2048;   // of each query: more would not stay in the L2 cache

struct CoarsePlan {
  int rows_per_minimum = 0;
  double likely = 0;  // candidates of a query
};

// The largest groups that leave hardly more candidates than k; where none do, the smallest that are few enough.
inline CoarsePlan plan_coarse(int64_t k, int64_t rows) {
  CoarsePlan plan;
  for (const int each : {64, 32, 8, 2}) {
    const int64_t minima = part_count(rows, each);
    if (plan.rows_per_minimum > 0 && minima > kCoarseMostMinima) break;
    plan = {each, rows_below_kth(k, minima)};
    if (plan.likely <= 1.16 * static_cast<double>(k) + 4) break;
  }
  return plan;
}

// Whether that is less work than computing every key.
inline bool suits_coarse(int64_t k, int64_t rows) {
  return plan_coarse(k, rows).likely <= static_cast<double>(rows) / 4;
}

// Candidates that re-ranking has room for, at most `most`: near rows may share groups more often than by chance.
inline int64_t coarse_room(int64_t k, int64_t rows, int64_t most) {
  const auto likely = static_cast<int64_t>(std::min(plan_coarse(k, rows).likely, static_cast<double>(rows)));
  return std::min(2 * std::max(likely, k) + 192, most);
}

// Device memory for so many queries.
constexpr int64_t coarse_minima_bytes(int64_t rows, int rows_per_minimum) {
  return part_count(rows, rows_per_minimum) * static_cast<int64_t>(sizeof(float));
}
constexpr int64_t coarse_bytes(int64_t queries, int64_t rows, int rows_per_minimum) {
  constexpr auto kMarkBytes = static_cast<int64_t>(sizeof(uint32_t));
  return queries * (coarse_minima_bytes(rows, rows_per_minimum) + mark_words(rows) * kMarkBytes);
}

}  // namespace kith
