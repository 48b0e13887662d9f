// The values of some queries and a set of rows, from which the smallest of each query are picked.
#pragma once

#include "core/divide.hpp"
#include "core/host_array.hpp"
#include "graph/lists/pairs/pair_scan.hpp"
#include "kernels/panels/panel_format.hpp"
#include "kernels/select/smallest_values.hpp"

#include <algorithm>
#include <cstdint>

namespace kith {

// As many queries, at most, as whole panels hold.
constexpr int64_t whole_panels(int64_t queries, const PanelShape& shape) {
  static_assert(kFirstQueries >= kMostQueriesPerPanel);
  return queries / shape.queries_per_panel * shape.queries_per_panel;
}

template <typename T>
class FirstValues {
 public:
  FirstValues() = default;
  FirstValues(int64_t wanted, int64_t most_rows, const Resources& resources, int64_t queries = kFirstQueries)
      : wanted_(wanted),
        stride_(stride_for(most_rows)),
        values_(queries * stride_, "the values of pairs", resources),
        minima_(smallest_groups(wanted), "the values of pairs", resources),
        places_(stride_, "the values of pairs", resources),
        keys_(stride_, "the values of pairs", resources) {}
  static int64_t bytes_for(int64_t wanted, int64_t most_rows, int64_t queries = kFirstQueries) {
    return array_bytes<T>((queries + 2) * stride_for(most_rows) + smallest_groups(wanted));
  }

  int64_t wanted() const { return wanted_; }
  int64_t stride() const { return stride_; }
  T* of(int64_t query) const { return values_.data() + query * stride_; }
  // At least `wanted` of a query's values are not above it; any limit where there are no more rows.
  T limit(int64_t query, int64_t rows) const {
    return limit_of_smallest(of(query), rows, std::min(wanted_, rows), minima_.data());
  }
  // Fills places().
  int64_t find(int64_t query, int64_t rows, T limit) { return places_up_to(of(query), rows, limit, places_.data()); }
  uint32_t* places() const { return places_.data(); }
  float* keys() const { return keys_.data(); }

 private:
  // Whole panels of any width, and what places_up_to() may write past the last.
  static int64_t stride_for(int64_t rows) { return round_up(rows, kMostRowsPerPanel) + kMostRowsPerPanel; }
  static_assert(kMostRowsPerPanel >= kPlacesPast);

  int64_t wanted_ = 0;
  int64_t stride_ = 0;
  HostArray<T> values_;
  HostArray<T> minima_;
  HostArray<uint32_t> places_;
  HostArray<float> keys_;
};

}  // namespace kith
