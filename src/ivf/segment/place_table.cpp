#include "ivf/segment/place_table.hpp"

#include <algorithm>

namespace kith {

PlaceTable::PlaceTable(const ListSegment& segment, const Resources& resources) {
  if (segment.size() == 0) return;
  const auto [least, most] = std::minmax_element(segment.rows(), segment.rows() + segment.size());
  first_ = *least;
  places_ = HostArray<uint32_t>(*most - first_ + 1, "a table of the rows' places", resources);
  std::fill(places_.begin(), places_.end(), UINT32_MAX);
  for (int64_t i = 0; i < segment.size(); ++i) places_[segment.rows()[i] - first_] = static_cast<uint32_t>(i);
}

SharedPlaceTable find_place_table(const SegmentCopies& segment) {
  return std::static_pointer_cast<const PlaceTable>(segment.prepared().find(Device::cpu(), PreparedAs<PlaceTable>()));
}

SharedPlaceTable get_place_table(const SegmentCopies& segment, int64_t room, const Resources& resources) {
  if (SharedPlaceTable ready = find_place_table(segment)) return ready;
  // Rows of a segment follow each other, so that a table has an entry for each.
  if (segment.size() == 0 || array_bytes<uint32_t>(segment.size()) > room) return nullptr;
  const auto made = std::make_shared<const PlaceTable>(*segment.on(Device::cpu(), resources), resources);
  return std::static_pointer_cast<const PlaceTable>(
      segment.prepared().keep(Device::cpu(), made, PreparedAs<PlaceTable>()));
}

}  // namespace kith
