// A filter as it comes from Python: one of the three forms of kith::RowFilter with the array that it refers to. Or a
// filter for each query.
#pragma once

#include "array.hpp"

#include <kith/row_filter.hpp>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace kith::python {

#define KITH_PY_FILTER "RowFilter | None"

class FilterArray {
 public:
  static FilterArray mask(ConstByteList keep) { return {RowFilter::Form::mask, std::move(keep), {}}; }
  static FilterArray bits(ConstByteList bits) { return {RowFilter::Form::bits, std::move(bits), {}}; }
  static FilterArray rows(ConstIdList rows) { return {RowFilter::Form::rows, {}, std::move(rows)}; }

  // None is no filter.
  static FilterArray each(const std::vector<std::optional<FilterArray>>& filters) { return FilterArray(filters); }

  // For a base of so many rows. Throws InvalidArgument where the mask or the bits are of another length, and for filters
  // of each query.
  RowFilter over(int64_t rows) const;
  // Those of each query; none where there is one for all.
  std::vector<RowFilter> each_over(int64_t rows) const;
  bool is_for_each() const { return for_each_; }

 private:
  explicit FilterArray(const std::vector<std::optional<FilterArray>>& filters)
      : form_(RowFilter::Form::none), each_(filters), for_each_(true) {}
  FilterArray(RowFilter::Form form, ConstByteList bytes, ConstIdList rows)
      : form_(form), bytes_(std::move(bytes)), rows_(std::move(rows)) {}

  RowFilter::Form form_;
  ConstByteList bytes_;
  ConstIdList rows_;
  std::vector<std::optional<FilterArray>> each_;
  bool for_each_ = false;
};

// What a search takes: a filter for all queries, or one for each; neither where `filter` is null, Python's None.
struct GivenFilter {
  GivenFilter(const FilterArray* filter, int64_t rows) {
    if (filter == nullptr) return;
    is_for_each = filter->is_for_each();
    if (is_for_each) {
      each = filter->each_over(rows);
    } else {
      for_all = filter->over(rows);
    }
  }

  bool is_for_each = false;
  RowFilter for_all;
  std::vector<RowFilter> each;
};

// For calls that take one filter for all queries.
inline RowFilter filter_over(const FilterArray* filter, int64_t rows) {
  return filter == nullptr ? RowFilter() : filter->over(rows);
}

}  // namespace kith::python
