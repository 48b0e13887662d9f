#include "ivf/segment/place_table.hpp"

#include <algorithm>

namespace kith {

PlaceTable::PlaceTable(const uint32_t* rows, int64_t count, const Resources& resources) {
  if (count == 0) return;
  const auto [least, most] = std::minmax_element(rows, rows + count);
  first_ = *least;
  places_ = HostArray<uint32_t>(*most - first_ + 1, "a table of the rows' places", resources);
  std::fill(places_.begin(), places_.end(), UINT32_MAX);
  for (int64_t i = 0; i < count; ++i) places_[rows[i] - first_] = static_cast<uint32_t>(i);
}

}  // namespace kith
