// A caller's filter in the rows of one version: a list names ids, which become rows; masks and bits are of rows
// already.
#pragma once

#include <kith/error.hpp>
#include <kith/row_filter.hpp>

#include "core/host_array.hpp"
#include "index/id_table.hpp"

#include <fmt/format.h>

#include <cstdint>

namespace kith {

class IdFilter {
 public:
  // InvalidArgument for an id that is not there. The caller's memory is read until the filter is used up.
  IdFilter(const RowFilter& filter, const IdTable& ids, const Resources& resources) : filter_(filter) {
    if (filter.form() != RowFilter::Form::rows || ids.plain()) return;
    rows_ = HostArray<int64_t>(filter.size(), "the filter's rows", resources);
    const auto* const listed = static_cast<const int64_t*>(filter.data());
    for (int64_t i = 0; i < filter.size(); ++i) {
      rows_[i] = ids.row(listed[i]);
      if (rows_[i] >= 0) continue;
      throw InvalidArgument(fmt::format("the filter's id {} at position {} is not in the index", listed[i], i));
    }
    filter_ = RowFilter::rows(rows_.data(), rows_.size());
  }

  const RowFilter& of_rows() const { return filter_; }

 private:
  HostArray<int64_t> rows_;
  RowFilter filter_;
};

}  // namespace kith
