// Which parameters of a search reach a recall: what Index::tune() measures and returns.
#pragma once

#include <kith/export.hpp>

#include <cstdint>
#include <vector>

namespace kith {

// Parameters of a search, as in SearchParams, and what searches with them were measured to find. 0: an index of that
// kind has no such parameter.
struct TunedSearch {
  int64_t beam = 0;
  int64_t width = 0;
  int64_t probes = 0;
  int64_t refine = 0;
  double recall = 0;          // the mean, over queries, of the share of the true k nearest that was found
  double standard_error = 0;  // of that mean
  // Vectors, codes and centres that a query was compared with, on average. Counted on the CPU, so that it says the same
  // on every device.
  double compared = 0;
  double seconds = 0;  // of a query, in batches as they were asked for; 0 in a table that was loaded from a file

  friend bool operator==(const TunedSearch&, const TunedSearch&) = default;
};

struct TuneParams {
  int64_t k = 10;
  double recall = 0.95;  // above 0 and at most 1
  int64_t batch = 0;     // queries that are searched at a time, for `seconds`; 0: all

  // Throws InvalidArgument, naming the parameter, its value and what is allowed.
  KITH_EXPORT void validate() const;
};

// All that was measured, by ascending `compared`; a part of the index and of its file.
struct TuneTable {
  int64_t k = 0;     // neighbours that were asked for
  int64_t rows = 0;  // that the index had then
  std::vector<TunedSearch> searches;

  // The search that has this recall with the fewest comparisons; null where none has it.
  const TunedSearch* find(double recall) const {
    for (const TunedSearch& one : searches) {
      if (one.recall >= recall) return &one;
    }
    return nullptr;
  }

  friend bool operator==(const TuneTable&, const TuneTable&) = default;
};

struct TuneReport {
  TunedSearch chosen;    // the one with the recall, or, where none has it, the one with the highest
  bool reached = false;  // whether it has the recall that was asked for
  TuneTable table;
};

}  // namespace kith
