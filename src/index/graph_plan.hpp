// Plans the search of a graph from its parameters and the number of kept rows. A pure function of counts.
//
// A walk compares about beam x degree codes at scattered places; exact search reads all kept rows one after the other.
// Measured on x86 with AMX, 100,000 rows, one query alone: a row of exact search takes as long as its bytes + 128, and
// each of the beam x degree codes as long as 400 of these bytes, whatever their columns. In a batch of 1,000 a row
// takes a tenth to a thirtieth of that, since exact search then multiplies matrices and walks do not. Results must not
// depend on the batch, so the price lies between: with kWalkedBytes = 1,024 a query alone takes two to four times as
// long by exact search where it begins, and one of 1,000 a tenth to two fifths (docs/graph-index.md has the numbers).
//
// With a filter that keeps a share f of the rows, the beam grows to beam / f, so that about `beam` of its places are
// kept, while exact search of the kept rows gets cheaper: both cost the same where the kept rows times f do (rows of 128
// bytes: at 7 % of 1M). Below that the kept rows are searched exactly, and so the slowest filter costs about 15
// unfiltered searches.
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
inline constexpr int64_t kWalkedBytes = 1024;       // the price of a code that a walk compares
inline constexpr int64_t kRowBytes = 128;           // the price of a row of exact search, beside its bytes
inline constexpr int64_t kDefaultWidth = 2;

struct GraphShape {
  int64_t degree = 0;     // 0: no graph
  int64_t row_bytes = 0;  // of a vector as exact search compares it

  // The number of rows that exact search compares in the time of a walk.
  double rows_for(int64_t beam) const {
    return static_cast<double>(kWalkedBytes * degree) * static_cast<double>(beam) /
           static_cast<double>(row_bytes + kRowBytes);
  }
  // Whether exact search of the kept rows costs no more than a walk.
  bool exact_costs_no_more(int64_t beam, int64_t kept) const {
    return beam > kWidestBeam || static_cast<double>(kept) <= rows_for(beam);
  }
};

struct GraphSearch {
  int64_t k = 10;
  int64_t beam = 32;
  int64_t width = kDefaultWidth;
  int64_t refine = 4;
  int64_t rows = 0;  // of the index
  int64_t kept = 0;  // by the filter, or all
  GraphShape graph;

  int64_t candidates() const { return std::min(refine, kWidestBeam / k) * k; }
};

struct GraphPlan {
  bool exact = true;
  WalkParams walk;
  int64_t candidates = 0;   // rows to compare by distance
  int64_t fewest_kept = 0;  // kept places that a walk's beam must have; 0: no filter
};

inline GraphPlan plan_graph_search(const GraphSearch& search) {
  GraphPlan plan;
  if (search.graph.degree == 0 || search.kept == 0) return plan;
  const int64_t beam = std::max(search.beam, search.k);
  const double share = static_cast<double>(search.kept) / static_cast<double>(search.rows);
  if (static_cast<double>(search.kept) * share <= search.graph.rows_for(beam)) return plan;
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
inline GraphPlan wider_plan(const GraphPlan& plan, int64_t kept, const GraphShape& graph) {
  GraphPlan wider = plan;
  wider.walk.beam = plan.walk.beam * kWider;
  wider.walk.kept = std::max(plan.fewest_kept, std::min(plan.candidates, wider.walk.beam));
  wider.exact = plan.fewest_kept == 0 || graph.exact_costs_no_more(wider.walk.beam, kept);
  return wider;
}

// The walk with the most memory that any filter can lead to.
inline WalkParams widest_walk(const GraphSearch& search) {
  const int64_t beam = std::max(search.beam, search.k);
  WalkParams params;
  const double even = static_cast<double>(search.rows) / search.graph.rows_for(1);  // costs as much as exact search
  params.beam = std::clamp(static_cast<int64_t>(even) + 1, beam, kWidestBeam);
  params.width = search.width;
  params.kept = std::max(divide_up(beam, int64_t{2}), search.candidates());
  return params;
}

// How often a walk may be repeated with a wider beam, at most.
inline int64_t most_widenings(const GraphSearch& search) {
  int64_t times = 0;
  for (int64_t beam = std::max(search.beam, search.k); !search.graph.exact_costs_no_more(beam, search.rows);
       beam *= kWider) {
    ++times;
  }
  return times;
}

}  // namespace kith
