// Sums and draws in the order of the tree.
#include "cluster/draw/draw_tree.hpp"

#include "core/random.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace kith {
namespace {

// Steps with their sums, block by block.
struct Steps {
  std::vector<double> steps;
  DrawTree tree;
  std::vector<double> sums;

  explicit Steps(std::vector<double> given)
      : steps(std::move(given)), tree(static_cast<int64_t>(steps.size())), sums(static_cast<size_t>(tree.size)) {
    for (int64_t block = 0; block < tree.blocks(); ++block) {
      sums[static_cast<size_t>(block)] =
          sum_children([&](int i) { return segment(block * kDrawFan + i); }, tree.children_of(block, tree.segments));
    }
    add_up_tree(tree, sums.data());
  }
  double segment(int64_t s) const {
    return sum_children([&](int i) { return steps[static_cast<size_t>(s * kDrawFan + i)]; },
                        DrawTree::children_of(s, tree.rows));
  }
  double total() const { return tree_total(tree, sums.data()); }
  uint32_t draw(double target) const {
    return draw_row(
        tree, sums.data(), target, [&](int64_t block, int i) { return segment(block * kDrawFan + i); },
        [&](int64_t i) { return steps[static_cast<size_t>(i)]; });
  }
};

TEST(DrawTree, HasAPlaceForEverySum) {
  for (const int64_t rows : {1, 31, 32, 33, 1023, 1024, 1025, 32768, 32769, 1000000, 1048577, 2147483647}) {
    const DrawTree tree(rows);
    EXPECT_EQ(tree.blocks(), (rows + 1023) / 1024) << rows;
    ASSERT_LE(tree.levels, DrawTree::kMostLevels);
    EXPECT_LE(tree.sizes[tree.top()], kDrawFan);
    int64_t places = 0;
    for (int level = 0; level < tree.levels; ++level) {
      EXPECT_EQ(tree.offsets[level], places);
      if (level > 0) {
        EXPECT_EQ(tree.sizes[level], (tree.sizes[level - 1] + kDrawFan - 1) / kDrawFan);
      }
      places += tree.sizes[level];
    }
    EXPECT_EQ(tree.size, places);
  }
}

// Whole numbers add up without rounding, so that every order gives the plain answer.
TEST(DrawTree, DrawsTheRowThatThePlainSumReaches) {
  for (const int64_t rows : {1, 5, 32, 33, 1024, 1025, 2100, 40000}) {
    std::vector<double> steps;
    const CounterRng rng(7, static_cast<uint64_t>(rows));
    for (int64_t i = 0; i < rows; ++i) steps.push_back(rng.below(static_cast<uint64_t>(i), 4));
    steps[static_cast<size_t>(rows / 2)] = 5;
    const Steps all(steps);
    std::vector<uint32_t> owner;  // of each unit of the total
    for (int64_t i = 0; i < rows; ++i) {
      owner.insert(owner.end(), static_cast<size_t>(steps[static_cast<size_t>(i)]), static_cast<uint32_t>(i));
    }
    ASSERT_EQ(all.total(), static_cast<double>(owner.size()));
    for (size_t unit = 0; unit < owner.size(); ++unit) {
      ASSERT_EQ(all.draw(static_cast<double>(unit)), owner[unit]) << rows;
      ASSERT_EQ(all.draw(static_cast<double>(unit) + 0.5), owner[unit]) << rows;
    }
  }
}

TEST(DrawTree, NeverDrawsARowWithoutAStep) {
  for (const int64_t rows : {40, 1500, 3000}) {
    std::vector<double> steps(static_cast<size_t>(rows), 0.0);
    for (int64_t i = 3; i < rows; i += 7) steps[static_cast<size_t>(i)] = 0.1 * static_cast<double>(1 + i % 3);
    for (int64_t i = rows * 3 / 4; i < rows; ++i) steps[static_cast<size_t>(i)] = 0;
    const Steps all(steps);
    const double total = all.total();
    for (int i = 0; i <= 2000; ++i) {  // the whole total too, where rounding leads past the last
      const uint32_t row = all.draw(total * i / 2000);
      ASSERT_LT(row, static_cast<uint64_t>(rows));
      if (i < 2000) {
        EXPECT_GT(steps[row], 0) << i;
      }
    }
  }
}

TEST(DrawTree, StaysInsideWhateverTheNumbersAre) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double odd : {kInfinity, std::nan(""), 0.0}) {
    for (const int64_t at : {0, 700, 1199}) {
      std::vector<double> steps(1200, odd == 0.0 ? 0.0 : 1.0);
      steps[static_cast<size_t>(at)] = odd;
      const Steps all(steps);
      for (const double share : {0.0, 0.3, 0.999}) EXPECT_LT(all.draw(share * all.total()), 1200u);
    }
  }
}

}  // namespace
}  // namespace kith
