// A caller's filter in the stored rows of one version: a list names ids, which become rows; masks and bits are of the live
// rows. Without one the dead rows are left out, where there are any.
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
  // InvalidArgument for an id that is not there, and for a mask of another size. The caller's memory is read until the
  // filter is used up.
  IdFilter(const RowFilter& filter, const IdTable& ids, const Resources& resources) : filter_(shape_of(filter, ids)) {
    const LiveRows& live = ids.live();
    if (lists_ids(filter, ids)) {
      rows_ = HostArray<int64_t>(filter.size(), "the filter's rows", resources);
      const auto* const listed = static_cast<const int64_t*>(filter.data());
      for (int64_t i = 0; i < filter.size(); ++i) {
        rows_[i] = ids.row(listed[i]);
        if (rows_[i] >= 0) continue;
        throw InvalidArgument(fmt::format("the filter's id {} at position {} is not in the index", listed[i], i));
      }
      filter_ = RowFilter::rows(rows_.data(), rows_.size());
    } else if (masks_live(filter, ids)) {
      bits_ = live.spread(KeptRows(filter, live.count(), resources).bits(), resources);
      filter_ = RowFilter::bits(reinterpret_cast<const uint8_t*>(bits_.data()), live.stored());
    }
  }

  const RowFilter& of_rows() const { return filter_; }

  // A filter of the form and size that such a one has: for what depends on these alone.
  static RowFilter shape_of(const RowFilter& filter, const IdTable& ids) {
    return filter.form() == RowFilter::Form::rows || ids.live().all() ? filter : ids.live().filter();
  }
  // What it takes on the host.
  static int64_t bytes_for(const RowFilter& filter, const IdTable& ids) {
    if (lists_ids(filter, ids)) return array_bytes<int64_t>(filter.size());
    if (!masks_live(filter, ids)) return 0;
    return LiveRows::bytes_for(ids.live().stored()) + KeptRows::most_bytes(filter, ids.live().count());
  }

 private:
  static bool lists_ids(const RowFilter& filter, const IdTable& ids) {
    return filter.form() == RowFilter::Form::rows && (!ids.plain() || !ids.live().all());
  }
  static bool masks_live(const RowFilter& filter, const IdTable& ids) {
    return (filter.form() == RowFilter::Form::mask || filter.form() == RowFilter::Form::bits) && !ids.live().all();
  }

  HostArray<int64_t> rows_;
  HostArray<uint64_t> bits_;
  RowFilter filter_;
};

}  // namespace kith
