// Rows joined by cells against the distances of all pairs.
#include "paths/near_in_cells.hpp"

#include <kith/pairwise_distances.hpp>

#include "exact/exact_check.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

std::vector<int64_t> labels_of(const RowSets& sets) {
  const RowLabels labels = sets.labels(on_cpu());
  return {labels.begin(), labels.end()};
}

class AllPairs {
 public:
  AllPairs(const MatrixView& x, Metric metric) : rows_(x.rows()), distances_(static_cast<size_t>(rows_ * rows_)) {
    pairwise_distances(x, x, MutableMatrixView(distances_.data(), rows_, rows_), {.metric = metric}, on_cpu());
  }

  std::vector<int64_t> joined(float radius) const {
    const RowSets sets(rows_, on_cpu());
    for (int64_t a = 0; a < rows_; ++a) {
      for (int64_t b = 0; b < a; ++b) {
        if (at(a, b) <= radius) sets.join(static_cast<uint32_t>(a), static_cast<uint32_t>(b));
      }
    }
    return labels_of(sets);
  }

  // Within which this share of the rows has another.
  float radius_of(double share) const {
    std::vector<float> nearest;
    for (int64_t a = 0; a < rows_; ++a) {
      float least = std::numeric_limits<float>::infinity();
      for (int64_t b = 0; b < rows_; ++b) least = a == b ? least : std::min(least, at(a, b));
      nearest.push_back(least);
    }
    std::sort(nearest.begin(), nearest.end());
    return nearest[static_cast<size_t>(share * static_cast<double>(nearest.size() - 1))];
  }

 private:
  float at(int64_t a, int64_t b) const { return distances_[static_cast<size_t>(a * rows_ + b)]; }

  int64_t rows_;
  std::vector<float> distances_;
};

// How often cells were enough; where they were, they have joined what all pairs do, and never more.
int64_t agreements(const MatrixView& x, Metric metric) {
  const AllPairs pairs(x, metric);
  int64_t done = 0;
  for (const float radius : {0.0f, pairs.radius_of(0.01), pairs.radius_of(0.2), pairs.radius_of(0.5), pairs.radius_of(1)}) {
    SCOPED_TRACE(::testing::Message() << name_of(metric) << ", radius " << radius);
    const RowSets sets(x.rows(), on_cpu());
    const bool finished = join_in_cells(x, {.radius = radius, .metric = metric, .many = 0}, sets, on_cpu());
    const std::vector<int64_t> wanted = pairs.joined(radius);
    const std::vector<int64_t> found = labels_of(sets);
    if (finished) {
      EXPECT_EQ(found, wanted);
    }
    std::vector<int64_t> group(static_cast<size_t>(x.rows()), -1);  // of all pairs, for each of those found
    for (size_t row = 0; row < found.size(); ++row) {
      int64_t& one = group[static_cast<size_t>(found[row])];
      if (one < 0) one = wanted[row];
      EXPECT_EQ(one, wanted[row]) << "row " << row << " was joined wrongly";
    }
    done += finished;
  }
  return done;
}

TEST(NearInCells, AreThoseOfAllPairs) {
  for (const Shape shape : reference::kAllShapes) {
    for (const int64_t cols : {1, 3, 24}) {
      SCOPED_TRACE(::testing::Message() << name_of(shape) << ", " << cols << " columns");
      const auto x = make_floats(shape, 500, cols, 1);
      int64_t done = 0;
      for (const Metric metric : {Metric::l2, Metric::sqeuclidean, Metric::cosine, Metric::l1, Metric::linf}) {
        done += agreements(x.view(), metric);
      }
      if (shape == Shape::gaussian && cols <= 3) {
        EXPECT_GE(done, 12);
      }
    }
  }
}

TEST(NearInCells, OfOtherDtypes) {
  const auto floats = make_floats(Shape::gaussian, 700, 5, 2);
  EXPECT_GE(agreements(reference::stored_as<uint8_t>(floats).view(), Metric::l2), 2);
  EXPECT_GE(agreements(reference::stored_as<int8_t>(floats).view(), Metric::cosine), 2);
  EXPECT_GE(agreements(reference::stored_as<Half>(floats).view(), Metric::sqeuclidean), 2);
}

// Ten dense places, each a chain of rows, and half of all rows equal: cells of one place are not compared row by row.
TEST(NearInCells, OfDensePlacesAndEqualRows) {
  std::vector<float> x;
  const auto noise = make_floats(Shape::gaussian, 1000, 4, 3);
  for (int64_t i = 0; i < 1000; ++i) {
    for (int64_t col = 0; col < 4; ++col) {
      x.push_back(100 * static_cast<float>(i % 10) + 0.01f * noise.row(i)[col] + (col == 0 ? 1e-3f * static_cast<float>(i) : 0));
    }
  }
  x.insert(x.end(), 1000 * 4, 7.0f);
  const MatrixView view(x.data(), 2000, 4);
  const AllPairs pairs(view, Metric::l2);
  for (const float radius : {0.0f, 0.02f, 0.5f}) {
    SCOPED_TRACE(radius);
    const RowSets sets(2000, on_cpu());
    ASSERT_TRUE(join_in_cells(view, {.radius = radius, .many = 0}, sets, on_cpu()));
    EXPECT_EQ(labels_of(sets), pairs.joined(radius));
  }
}

TEST(NearInCells, SeedsChangeNothing) {
  const auto x = make_floats(Shape::gaussian, 900, 3, 4);
  const auto found = [&](uint64_t seed) {
    const RowSets sets(900, on_cpu());
    EXPECT_TRUE(join_in_cells(x.view(), {.radius = 0.1f, .seed = seed, .many = 0}, sets, on_cpu()));
    return labels_of(sets);
  };
  const auto first = found(0);
  for (uint64_t seed = 1; seed < 6; ++seed) EXPECT_EQ(found(seed), first);
}

TEST(NearInCells, GiveUpWhereAllPairsAreSooner) {
  const auto x = make_floats(Shape::gaussian, 900, 3, 5);
  const auto joins = [&](const NearPairs& wanted) {
    const RowSets sets(900, on_cpu());
    return join_in_cells(x.view(), wanted, sets, on_cpu());
  };
  EXPECT_TRUE(joins({.radius = 0.01f, .many = 0}));
  EXPECT_FALSE(joins({.radius = 0.01f}));
  EXPECT_FALSE(joins({.radius = 0.01f, .metric = Metric::chi_square, .many = 0}));
  EXPECT_FALSE(joins({.radius = 1, .metric = Metric::cosine, .many = 0}));
  const RowSets sets(900, on_cpu());
  EXPECT_FALSE(join_in_cells(x.view(), {.radius = 0.01f, .many = 0}, sets, on_cpu(2, 10'000)));
}

}  // namespace
}  // namespace kith
