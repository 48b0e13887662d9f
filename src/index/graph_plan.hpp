// Plans the search of a graph from its parameters and the number of kept rows. A pure function of counts.
//
// A walk compares about beam x degree codes at scattered places; one of them costs as much as kExactPerWalked
// contiguous rows. With a filter that keeps a share f of the rows, the beam grows to beam / f, so that about `beam` of
// its places are kept, while exact search of the kept rows gets cheaper: both cost the same at f^2 rows =
// kExactPerWalked x beam x degree (7 % of 1M rows). Below that the kept rows are searched exactly, and so the slowest
// filter costs about 15 unfiltered searches.
//
// The share of kept rows near a query may differ. A walk whose beam has fewer than half of the wanted kept places would
// find less than one without a filter (recall on SIFT 0.95 instead of 0.97 for a half to a quarter, 0.88 below). If a
// beam kWider times as wide may have enough, and is cheaper than exact search, the walk is repeated with it. Otherwise
// the kept rows are searched exactly: if the nearest of them are far away, they are scattered all around the query, and
// no walk finds them quickly.
#pragma once

#include "core/divide.hpp"
#include "graph/search/walk/walk.hpp"
#include "index/after_walk.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace kith {

inline constexpr int64_t kFewestWalkedRows = 4096;  // below, every search is exact
inline constexpr int64_t kExactPerWalked = 4;
inline constexpr int64_t kDefaultWidth = 2;

struct GraphSearch {
  int64_t k = 10;
  int64_t beam = 32;
  int64_t width = kDefaultWidth;
  int64_t refine = 4;
  int64_t rows = 0;    // of the index
  int64_t kept = 0;    // by the filter, or all
  int64_t degree = 0;  // 0: no graph

  int64_t candidates() const { return std::min(refine, kWidestBeam / k) * k; }
};

struct GraphPlan {
  bool exact = true;
  WalkParams walk;
  int64_t candidates = 0;   // rows to compare by distance
  int64_t fewest_kept = 0;  // kept places that a walk's beam must have; 0: no filter
};

// Whether exact search of the kept rows costs no more than a walk.
inline bool exact_costs_no_more(int64_t beam, int64_t kept, int64_t degree) {
  return beam > kWidestBeam || kept <= kExactPerWalked * degree * beam;
}

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
  plan.candidates = search.candidates();
  plan.walk.beam = wide;
  plan.walk.width = search.width;
  if (search.kept < search.rows) {
    plan.fewest_kept = divide_up(beam, int64_t{2});
    plan.walk.kept = std::max(plan.fewest_kept, std::min(plan.candidates, wide));
  }
  return plan;
}

// For queries whose walks by `plan`, with a filter that keeps `kept` rows, found too few of them.
inline GraphPlan wider_plan(const GraphPlan& plan, int64_t kept, int64_t degree) {
  GraphPlan wider = plan;
  wider.walk.beam = plan.walk.beam * kWider;
  wider.walk.kept = std::max(plan.fewest_kept, std::min(plan.candidates, wider.walk.beam));
  wider.exact = plan.fewest_kept == 0 || exact_costs_no_more(wider.walk.beam, kept, degree);
  return wider;
}

// The walk with the most memory that any filter can lead to.
inline WalkParams widest_walk(const GraphSearch& search) {
  const int64_t beam = std::max(search.beam, search.k);
  WalkParams params;
  params.beam = std::clamp(search.rows / (kExactPerWalked * search.degree) + 1, beam, kWidestBeam);
  params.width = search.width;
  params.kept = std::max(divide_up(beam, int64_t{2}), search.candidates());
  return params;
}

// How often a walk may be repeated with a wider beam, at most.
inline int64_t most_widenings(const GraphSearch& search) {
  int64_t times = 0;
  for (int64_t beam = std::max(search.beam, search.k); !exact_costs_no_more(beam, search.rows, search.degree);
       beam *= kWider) {
    ++times;
  }
  return times;
}

}  // namespace kith
