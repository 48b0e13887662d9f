// A table from row number to place within a segment: the inverse of ListSegment::rows().
//
// reconstruct_rows() makes one for the duration of a call. For filters that keep few rows, one is kept with the
// segment: without it, finding those rows takes a pass over all rows, at 1 ns each.
//
// Memory: 4 bytes per row. Cost of construction: a pass over the rows.
#pragma once

#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "ivf/segment/prepared_segment.hpp"

#include <cstdint>
#include <memory>

namespace kith {

class PlaceTable final : public PreparedSegment {
 public:
  static constexpr int64_t kNowhere = -1;

  // The rows of a segment, in host memory.
  PlaceTable(const uint32_t* rows, int64_t count, const Resources& resources);

  int64_t bytes() const override { return places_.bytes(); }
  int64_t first_row() const { return first_; }
  int64_t end_row() const { return first_ + places_.size(); }
  int64_t find(int64_t row) const {
    if (row < first_ || row >= end_row()) return kNowhere;
    const uint32_t place = places_[row - first_];
    return place == UINT32_MAX ? kNowhere : place;
  }

 private:
  int64_t first_ = 0;
  HostArray<uint32_t> places_;
};

using SharedPlaceTable = std::shared_ptr<const PlaceTable>;

}  // namespace kith
