// A filter as it comes from Python: one of the three forms of kith::RowFilter with the array that it refers to.
#pragma once

#include "array.hpp"

#include <kith/row_filter.hpp>

#include <cstdint>
#include <string_view>

namespace kith::python {

#define KITH_PY_FILTER "RowFilter | None"

class FilterArray {
 public:
  static FilterArray mask(ConstByteList keep) { return {RowFilter::Form::mask, std::move(keep), {}}; }
  static FilterArray bits(ConstByteList bits) { return {RowFilter::Form::bits, std::move(bits), {}}; }
  static FilterArray rows(ConstIdList rows) { return {RowFilter::Form::rows, {}, std::move(rows)}; }

  // For a base of so many rows. Throws InvalidArgument where the mask or the bits are of another length.
  RowFilter over(int64_t rows) const;

 private:
  FilterArray(RowFilter::Form form, ConstByteList bytes, ConstIdList rows)
      : form_(form), bytes_(std::move(bytes)), rows_(std::move(rows)) {}

  RowFilter::Form form_;
  ConstByteList bytes_;
  ConstIdList rows_;
};

// No filter where `filter` is null, Python's None.
inline RowFilter filter_over(const FilterArray* filter, int64_t rows) {
  return filter == nullptr ? RowFilter() : filter->over(rows);
}

}  // namespace kith::python
