#include "kernels/select/other_neighbors.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace kith {
namespace {

// The rows that come, -1 for padding.
std::vector<int64_t> others_of(const std::vector<uint32_t>& rows, uint32_t itself, int count) {
  std::vector<uint64_t> list;
  for (const uint32_t row : rows) list.push_back(pack_neighbor(ordered_key(static_cast<float>(list.size())), row));
  OtherNeighbors others{list.data(), static_cast<int64_t>(list.size()), itself};
  std::vector<int64_t> found;
  for (int i = 0; i < count; ++i) {
    const uint64_t neighbor = others.next();
    found.push_back(neighbor == kPadding ? -1 : static_cast<int64_t>(row_of(neighbor)));
  }
  return found;
}

using OtherRows = std::vector<int64_t>;

TEST(OtherNeighbors, LeaveOneOutWhereverItStands) {
  EXPECT_EQ(others_of({7, 4, 9, 2}, 7, 3), (OtherRows{4, 9, 2}));
  EXPECT_EQ(others_of({7, 4, 9, 2}, 9, 3), (OtherRows{7, 4, 2}));
  EXPECT_EQ(others_of({7, 4, 9, 2}, 2, 3), (OtherRows{7, 4, 9}));
  EXPECT_EQ(others_of({7, 4, 9, 2}, 5, 3), (OtherRows{7, 4, 9}));  // its duplicates have taken its place
}

TEST(OtherNeighbors, EndInPadding) {
  EXPECT_EQ(others_of({7, 4}, 4, 4), (OtherRows{7, -1, -1, -1}));
  EXPECT_EQ(others_of({0}, 0, 2), (OtherRows{-1, -1}));
  EXPECT_EQ(others_of({}, 0, 2), (OtherRows{-1, -1}));
}

TEST(OtherNeighbors, AreAllWithoutOneToLeaveOut) {
  EXPECT_EQ(others_of({7, 0, 9}, OtherNeighbors::kNoOne, 5), (OtherRows{7, 0, 9, -1, -1}));
}

}  // namespace
}  // namespace kith
