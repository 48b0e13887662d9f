#include "kernels/matrix/nearest_rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

namespace kith {
namespace {

TEST(NearestRows, KeepsTheThreeLeastAndTheValueOfTheFourth) {
  std::mt19937 random(1);
  for (uint32_t count = 0; count < 12; ++count) {
    for (int turn = 0; turn < 50; ++turn) {
      NearestRows kept{{kFarthestValue, kFarthestValue, kFarthestValue, kFarthestValue},
                       {kNoNearest, kNoNearest, kNoNearest, kNoNearest}};
      std::vector<std::pair<float, uint32_t>> all(4, {kFarthestValue, kNoNearest});
      for (uint32_t row = 0; row < count; ++row) {
        const auto value = static_cast<float>(random() % 7);
        insert_nearest([&](int i) -> float& { return kept.values[i]; },
                       [&](int i) -> uint32_t& { return kept.rows[i]; }, value, row);
        all.emplace_back(value, row);
      }
      // Equal ones may stand in any order, but none twice, and each with its value.
      for (int i = 0; i < kNearestKept; ++i) {
        const std::pair<float, uint32_t> found{kept.values[i], kept.rows[i]};
        EXPECT_NE(std::find(all.begin(), all.end(), found), all.end());
        for (int j = 0; j < i; ++j) EXPECT_TRUE(kept.rows[i] == kNoNearest || kept.rows[i] != kept.rows[j]);
      }
      std::sort(all.begin(), all.end());
      for (size_t i = 0; i <= kNearestKept; ++i) EXPECT_EQ(kept.values[i], all[i].first);
    }
  }
}

}  // namespace
}  // namespace kith
