// The rows that a range search on a GPU has found for a batch of queries: parts, as they were brought to the host, each
// with a run of rows for some of the queries.
//
// Memory: 8 bytes for each row found and 8 for each run; 8 more a row while they are put together.
#pragma once

#include "core/host_array.hpp"
#include "kernels/select/range_hits.hpp"

#include <cstdint>
#include <vector>

namespace kith {

class RangeRuns {
 public:
  struct Run {
    uint32_t query;
    uint32_t count;
  };
  // A part's runs, one after the other.
  struct Part {
    HostArray<Run> runs;
    HostArray<uint64_t> neighbors;
    int64_t run_count = 0;
  };

  explicit RangeRuns(const Resources& resources) : resources_(resources) {}

  // Counts the rows, and gives room for them; null where they are only counted. No query has two runs in a part.
  Part* add(int64_t runs, int64_t rows);

  bool overflowed() const { return overflowed_; }
  int64_t counted() const { return counted_; }
  void clear();
  void only_count() { overflowed_ = true; }

  // Each query's rows, sorted; empties the store.
  CollectedHits collect(int64_t queries, ProgressMeter& meter);

 private:
  Resources resources_;
  std::vector<Part> parts_;
  int64_t counted_ = 0;
  bool overflowed_ = false;
};

}  // namespace kith
