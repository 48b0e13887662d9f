#include "row_filter.hpp"

#include "module.hpp"

#include <kith/error.hpp>

#include <fmt/format.h>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

namespace kith::python {

RowFilter FilterArray::over(int64_t rows) const {
  if (for_each_) {
    throw InvalidArgument("filter is a filter for each query; this call takes one filter for all queries");
  }
  if (form_ == RowFilter::Form::rows) return RowFilter::rows(rows_.data(), static_cast<int64_t>(rows_.size()));
  const auto bytes = static_cast<int64_t>(bytes_.size());
  if (form_ == RowFilter::Form::mask) {
    if (bytes != rows) {
      throw InvalidArgument(
          fmt::format("filter is a mask of {} values and the base has {} rows; give one for each row", bytes, rows));
    }
    return RowFilter::mask(bytes_.data(), rows);
  }
  if (bytes != (rows + 7) / 8) {
    throw InvalidArgument(fmt::format(
        "filter is uint8, packed bits, of {} bytes; the {} rows of the base need {}, eight rows a byte. A mask of one "
        "byte a row must be bool: x.astype(bool); a list of row numbers another integer type",
        bytes, rows, (rows + 7) / 8));
  }
  return RowFilter::bits(bytes_.data(), rows);
}

std::vector<RowFilter> FilterArray::each_over(int64_t rows) const {
  std::vector<RowFilter> filters;
  filters.reserve(each_.size());
  for (const std::optional<FilterArray>& one : each_) {
    try {
      filters.push_back(one ? one->over(rows) : RowFilter());
    } catch (const InvalidArgument& refused) {
      throw InvalidArgument(fmt::format("query {}: {}", filters.size(), refused.what()));
    }
  }
  return filters;
}

void bind_row_filter(nb::module_& module) {
  nb::class_<FilterArray>(module, "RowFilter", "Which rows a search may return; refers to the array it was made of.")
      .def_static("mask", &FilterArray::mask, nb::arg("keep").noconvert(), "A byte for each row, not 0 where kept.")
      .def_static("bits", &FilterArray::bits, nb::arg("bits").noconvert(), "A bit for each row, the lowest first.")
      .def_static("rows", &FilterArray::rows, nb::arg("rows").noconvert(), "The numbers of the rows to keep.")
      .def_static("each", &FilterArray::each, nb::arg("filters"),
                  nb::sig("def each(filters: Sequence[RowFilter | None]) -> RowFilter"), "A filter for each query.");
}

}  // namespace kith::python
