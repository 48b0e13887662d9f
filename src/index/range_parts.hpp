// Results of a range search that was made some queries at a time, put together. Memory: that of the results twice, for
// a moment; once where there is one part.
#pragma once

#include <kith/range_search.hpp>
#include <kith/resources.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace kith {

class RangeParts {
 public:
  // Of the queries behind those before, in host memory.
  void add(RangeNeighbors part) { parts_.push_back(std::move(part)); }

  RangeNeighbors joined(const Resources& resources) && {
    if (parts_.size() == 1) return std::move(parts_.front());
    int64_t queries = 0;
    int64_t size = 0;
    for (const RangeNeighbors& part : parts_) {
      queries += part.queries();
      size += part.size();
    }
    RangeNeighbors all(queries, size, resources);
    all.offsets()[0] = 0;
    int64_t query = 0;
    int64_t at = 0;
    for (RangeNeighbors& part : parts_) {
      const int64_t found = part.size();
      std::copy_n(part.ids(), found, all.ids() + at);
      std::copy_n(part.distances(), found, all.distances() + at);
      for (int64_t i = 1; i <= part.queries(); ++i) all.offsets()[++query] = at + part.offsets()[i];
      at += found;
      part = RangeNeighbors();
    }
    return all;
  }

 private:
  std::vector<RangeNeighbors> parts_;
};

}  // namespace kith
