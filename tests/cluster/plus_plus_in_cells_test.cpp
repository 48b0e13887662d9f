// k-means++ within cells: every group is found, whatever the threads, and the largest gains are taken.
#include "cluster/draw/plus_plus_in_cells.hpp"

#include "cluster/draw/kmeans_plus_plus.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

TEST(PlusPlusInCells, AreUsedWhereAllTogetherWouldTakeLong) {
  EXPECT_EQ(plus_plus_cells(4000, 128, 1000), 1);
  EXPECT_EQ(plus_plus_cells(50, 128, 262144), 1);
  EXPECT_EQ(plus_plus_cells(4 * 16384, 128, 16384), 1);
  EXPECT_GT(plus_plus_cells(4 * 65536, 128, 65536), 16);
  EXPECT_LE(plus_plus_cells(4 * 262144, 1024, 262144), 512);
}

TEST(PlusPlusInCells, TakeTheLargestGains) {
  // Gains: the first of each; 4 and 1; 2, 3 and 3.
  const std::vector<std::vector<double>> potentials = {{10, 6, 5}, {}, {9, 7, 4, 1}};
  const auto places = [&](int64_t clusters) {
    std::vector<std::pair<size_t, size_t>> found;
    for (const CellGain& gain : largest_gains(potentials, clusters)) found.emplace_back(gain.cell, gain.place);
    return found;
  };
  using Places = std::vector<std::pair<size_t, size_t>>;
  EXPECT_EQ(places(2), (Places{{0, 0}, {2, 0}}));
  EXPECT_EQ(places(4), (Places{{0, 0}, {0, 1}, {2, 0}, {2, 2}}));
  EXPECT_EQ(places(7).size(), 7u);
}

TEST(PlusPlusInCells, FindTheGroupsByAnyThreadsWithWeightsOrWithout) {
  constexpr int64_t kGroups = 40;
  constexpr int64_t kRows = 1200;
  for (const int64_t cols : {5, 24}) {
    auto rows = make_floats(Shape::gaussian, kRows, cols, 5);
    const auto middles = make_floats(Shape::gaussian, kGroups, cols, 6);
    for (int64_t i = 0; i < kRows; ++i) {
      for (int64_t c = 0; c < cols; ++c) rows.row(i)[c] += 200 * middles.row(i % kGroups)[c];
    }
    std::vector<float> weights(kRows, 0.5f);
    for (const float* const weight : {static_cast<const float*>(nullptr), static_cast<const float*>(weights.data())}) {
      std::vector<uint32_t> truth;
      for (const int threads : {1, 3}) {
        ResourceOptions options;
        options.threads = threads;
        const Resources resources(options);
        ProgressMeter meter("test", 1, resources);
        const PlusPlusCells from{rows.view(), weight, kGroups, 6, PanelFormat::f32, 7, 3};
        const std::vector<uint32_t> chosen = choose_plus_plus_in_cells(from, meter, resources);
        if (truth.empty()) truth = chosen;
        EXPECT_EQ(chosen, truth);
        std::set<int64_t> groups;
        for (const uint32_t row : chosen) groups.insert(row % kGroups);
        EXPECT_EQ(chosen.size(), static_cast<size_t>(kGroups));
        EXPECT_EQ(groups.size(), static_cast<size_t>(kGroups));
      }
    }
  }
}

}  // namespace
}  // namespace kith
