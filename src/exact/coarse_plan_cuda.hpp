// How a GPU searches few rows for many queries: the coarse step of an index, the centres of a clustering.
//
//   1. the product, of which the minima of groups of rows are written: small groups, so that the k-th smallest of
//      their minima, with its error bound, is hardly more than the k-th smallest of all
//   2. a second product marks the rows that do not exceed it, a bit for each
//   3. canonical keys of the marked rows, sorted
// Two products of few rows cost less than re-ranking whole groups, or than writing every value.
#pragma once

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

// Candidates that re-ranking has room for: near rows may share groups more often than by chance.
inline int64_t coarse_room(int64_t k, int64_t rows, int64_t most) {
  const auto likely = static_cast<int64_t>(std::min(plan_coarse(k, rows).likely, static_cast<double>(rows)));
  return std::min(2 * std::max(likely, k) + 192, most);
}

}  // namespace kith
