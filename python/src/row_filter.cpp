#include "row_filter.hpp"

#include "module.hpp"

#include <kith/error.hpp>

#include <fmt/format.h>

namespace kith::python {

RowFilter FilterArray::over(int64_t rows) const {
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

void bind_row_filter(nb::module_& module) {
  nb::class_<FilterArray>(module, "RowFilter", "Which rows a search may return; refers to the array it was made of.")
      .def_static("mask", &FilterArray::mask, nb::arg("keep").noconvert(), "A byte for each row, not 0 where kept.")
      .def_static("bits", &FilterArray::bits, nb::arg("bits").noconvert(), "A bit for each row, the lowest first.")
      .def_static("rows", &FilterArray::rows, nb::arg("rows").noconvert(), "The numbers of the rows to keep.");
}

}  // namespace kith::python
