// How a search of a graph is made: what its parameters and the kept rows lead to. A pure function of counts.
//
// A walk compares about beam x degree codes that lie anywhere, each as much work as kExactPerWalked rows that lie
// together. With a filter that keeps a share f of the rows the beam grows to beam / f, while exact search of the kept
// rows shrinks: they cost the same where f^2 rows = kExactPerWalked x beam x degree (7 % of 1M rows). Below that the
// kept rows are searched exactly; and so the slowest filter costs about 15 unfiltered searches.
#pragma once

#include "core/divide.hpp"
#include "graph/search/walk/walk.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace kith {

inline constexpr int64_t kFewestWalkedRows = 4096;  // below, every search is exact
inline constexpr int64_t kExactPerWalked = 4;
inline constexpr int64_t kDefaultWidth = 2;
inline constexpr int64_t kFewestKept = 4;  // times refine * k: a walk that met fewer kept places is not trusted

struct GraphSearch {
  int64_t k = 10;
  int64_t beam = 32;
  int64_t width = kDefaultWidth;
  int64_t refine = 4;
  int64_t rows = 0;    // of the index
  int64_t kept = 0;    // by the filter; all without one
  int64_t degree = 0;  // 0: there is no graph
};

struct GraphPlan {
  bool exact = true;
  WalkWish walk;
  int64_t candidates = 0;   // rows that are compared again
  int64_t fewest_kept = 0;  // places that a walk with a filter must have met
};

inline GraphPlan plan_graph_search(const GraphSearch& search) {
  GraphPlan plan;
  if (search.degree == 0 || search.kept == 0) return plan;
  const int64_t beam = std::max(search.beam, search.k);
  const double share = static_cast<double>(search.kept) / static_cast<double>(search.rows);
  const double walked = static_cast<double>(kExactPerWalked * search.degree) * static_cast<double>(beam);
  if (static_cast<double>(search.kept) * share <= walked) return plan;
  const auto wide = static_cast<int64_t>(std::ceil(static_cast<double>(beam) / share));
  if (wide > kWidestBeam) return plan;
  plan.exact = false;
  plan.candidates = std::min(search.refine, kWidestBeam / search.k) * search.k;
  plan.walk.beam = wide;
  plan.walk.width = search.width;
  if (search.kept < search.rows) {
    plan.fewest_kept = std::min(kFewestKept * plan.candidates, kWidestBeam);
    plan.walk.kept = std::max(beam, plan.fewest_kept);
  }
  return plan;
}

// The walk with the most memory that a filter can lead to.
inline WalkWish widest_walk(const GraphSearch& search) {
  const auto beam = static_cast<double>(std::max(search.beam, search.k));
  const double most =
      std::sqrt(static_cast<double>(search.rows) * beam / static_cast<double>(kExactPerWalked * search.degree)) + 1;
  WalkWish wish;
  wish.beam = std::clamp<int64_t>(static_cast<int64_t>(std::ceil(most)), static_cast<int64_t>(beam), kWidestBeam);
  wish.width = search.width;
  const int64_t candidates = std::min(search.refine, kWidestBeam / search.k) * search.k;
  wish.kept = std::max(static_cast<int64_t>(beam), std::min(kFewestKept * candidates, kWidestBeam));
  return wish;
}

}  // namespace kith
