#include "ivf/segment/renumbered_segment.hpp"

#include <algorithm>

namespace kith {

Segment renumbered(const ListSegment& segment, int64_t first_row, const Resources& resources) {
  const int64_t size = segment.size();
  HostArray<int64_t> offsets(segment.lists() + 1, "the lists' offsets", resources);
  HostArray<uint8_t> codes(size * segment.code_bytes(), "the lists' codes", resources);
  HostArray<uint32_t> rows(size, "the lists' rows", resources);
  std::copy_n(segment.offsets(), offsets.size(), offsets.data());
  std::copy_n(segment.codes(), codes.size(), codes.data());
  std::transform(segment.rows(), segment.rows() + size, rows.data(),
                 [&](uint32_t row) { return static_cast<uint32_t>(row + first_row); });
  return std::make_shared<ListSegment>(std::move(offsets), std::move(codes), std::move(rows), segment.code_bytes(),
                                       resources);
}

}  // namespace kith
