// The result of Index::tune(): which search parameters reach which recall.
#pragma once

#include <kith/export.hpp>

#include <cstdint>
#include <vector>

namespace kith {

// Search parameters, as in SearchParams, and how searches with them did. A parameter that the kind of index lacks is
// 0.
struct TunedSearch {
  int64_t beam = 0;
  int64_t width = 0;
  int64_t probes = 0;
  int64_t refine = 0;
  double recall = 0;          // share of the true k nearest that was found, mean over the queries
  double standard_error = 0;  // of that mean
  // Vectors, codes and centres that a query was compared with, on average. Counted on the CPU, and so the same on all
  // devices.
  double compared = 0;
  double seconds = 0;  // per query, in batches of TuneParams::batch; 0 in a table that was loaded from a file

  friend bool operator==(const TunedSearch&, const TunedSearch&) = default;
};

struct TuneParams {
  int64_t k = 10;
  double recall = 0.95;  // above 0 and at most 1
  int64_t batch = 0;     // queries searched at once when `seconds` is measured; 0: all

  // Throws InvalidArgument, naming the parameter, its value and what is allowed.
  KITH_EXPORT void validate() const;
};

// All measurements, by ascending `compared`. Part of the index and of its file.
struct TuneTable {
  int64_t k = 0;     // neighbours per query
  int64_t rows = 0;  // size of the index at that time
  std::vector<TunedSearch> searches;

  // The search that reaches this recall with the fewest comparisons; null if none does.
  const TunedSearch* find(double recall) const {
    for (const TunedSearch& one : searches) {
      if (one.recall >= recall) return &one;
    }
    return nullptr;
  }

  friend bool operator==(const TuneTable&, const TuneTable&) = default;
};

struct TuneReport {
  TunedSearch chosen;    // the cheapest that reaches the recall, or the one with the highest recall
  bool reached = false;  // whether `chosen` reaches it
  TuneTable table;
};

}  // namespace kith
