// A segment whose rows are numbered from another one on: lists of one index that come to another.
#pragma once

#include <kith/resources.hpp>

#include "ivf/segment/list_segment.hpp"

#include <cstdint>

namespace kith {

// A copy, with first_row added to every row number.
Segment renumbered(const ListSegment& segment, int64_t first_row, const Resources& resources);

}  // namespace kith
