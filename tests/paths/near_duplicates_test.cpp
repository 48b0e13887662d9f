// Near duplicates against all pairs, joined one by one.
#include <kith/near_duplicates.hpp>

#include <kith/error.hpp>
#include <kith/pairwise_distances.hpp>

#include "exact/exact_check.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

std::vector<int64_t> labels_of(const RowLabels& labels) { return {labels.begin(), labels.end()}; }

// Every pair within the radius is joined, in quadratic time and more.
std::vector<int64_t> all_pairs(const MatrixView& x, float radius, Metric metric) {
  const int64_t rows = x.rows();
  std::vector<float> distances(static_cast<size_t>(rows * rows));
  pairwise_distances(x, x, MutableMatrixView(distances.data(), rows, rows), {.metric = metric}, on_cpu());
  std::vector<int64_t> least(static_cast<size_t>(rows));
  std::iota(least.begin(), least.end(), 0);
  for (bool changed = true; changed;) {
    changed = false;
    for (int64_t a = 0; a < rows; ++a) {
      for (int64_t b = 0; b < rows; ++b) {
        int64_t& one = least[static_cast<size_t>(a)];
        const int64_t other = least[static_cast<size_t>(b)];
        if (distances[static_cast<size_t>(a * rows + b)] > radius || other >= one) continue;
        one = other;
        changed = true;
      }
    }
  }
  std::vector<int64_t> labels(static_cast<size_t>(rows));
  int64_t sets = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const auto at = static_cast<size_t>(row);
    labels[at] = least[at] == row ? sets++ : labels[static_cast<size_t>(least[at])];
  }
  return labels;
}

TEST(NearDuplicates, AreThoseOfAllPairs) {
  const auto x = make_floats(Shape::gaussian, 300, 3, 1);
  for (const Metric metric : {Metric::l2, Metric::cosine, Metric::l1}) {
    for (const float radius : {0.0f, 0.01f, 0.1f, 0.3f, 1.0f, 100.0f}) {
      for (const int64_t k : {1, 3, 10}) {
        SCOPED_TRACE(::testing::Message() << name_of(metric) << ", radius " << radius << ", k " << k);
        const RowLabels found =
            near_duplicates(x.view(), {.radius = radius, .metric = metric, .exact = true, .k = k}, on_cpu());
        const std::vector<int64_t> wanted = all_pairs(x.view(), radius, metric);
        ASSERT_EQ(labels_of(found), wanted);
        ASSERT_EQ(found.sets, *std::max_element(wanted.begin(), wanted.end()) + 1);
      }
    }
  }
}

TEST(NearDuplicates, OfEqualRowsAreOneGroup) {
  const std::vector<float> ones(500 * 4, 1.0f);
  for (const bool exact : {false, true}) {
    const RowLabels found = near_duplicates(MatrixView(ones.data(), 500, 4), {.radius = 0, .exact = exact}, on_cpu());
    EXPECT_EQ(found.sets, 1);
  }
}

// Ranges of blocks that have no room are asked for again in smaller ones; the last error says what is missing.
TEST(NearDuplicates, OfLittleMemoryAreTheSame) {
  const auto x = make_floats(Shape::gaussian, 3000, 4, 2);
  const NearDuplicateParams wanted{.radius = 0.6f, .exact = true};
  const std::vector<int64_t> all = labels_of(near_duplicates(x.view(), wanted, on_cpu()));
  EXPECT_EQ(labels_of(near_duplicates(x.view(), wanted, on_cpu(2, 2 << 20))), all);
  EXPECT_THROW(near_duplicates(x.view(), wanted, on_cpu(2, 20'000)), OutOfMemory);
}

// Every row is near to every other: ranges end once all are one group. float64 rows lose their common offset first.
TEST(NearDuplicates, OfADensePlaceAndOfDoubles) {
  const auto x = make_floats(Shape::gaussian, 5000, 3, 3);
  EXPECT_EQ(near_duplicates(x.view(), {.radius = 100, .exact = true}, on_cpu()).sets, 1);
  std::vector<double> far;
  for (int64_t i = 0; i < 300 * 3; ++i) far.push_back(1e6 + static_cast<double>(x.row(0)[i]));
  const MatrixView doubles(reinterpret_cast<const std::byte*>(far.data()), DType::f64, {300, 3, 3});
  const auto plain = MatrixView(x.row(0), 300, 3);
  for (const int64_t limit : {kNoLimit, int64_t{1} << 22}) {
    const RowLabels found = near_duplicates(doubles, {.radius = 0.3f, .exact = true}, on_cpu(2, limit));
    EXPECT_EQ(labels_of(found), labels_of(near_duplicates(plain, {.radius = 0.3f, .exact = true}, on_cpu())));
  }
}

// Copies of rows with a little noise: the graph finds all of them.
TEST(NearDuplicates, ThatWerePlantedAreFound) {
  const auto plain = make_floats(Shape::gaussian, 5000, 16, 1);
  std::vector<float> x(plain.row(0), plain.row(0) + 5000 * 16);
  for (int64_t i = 0; i < 500 * 16; ++i) x.push_back(x[static_cast<size_t>(i)] + 0.001f);
  const RowLabels found = near_duplicates(MatrixView(x.data(), 5500, 16), {.radius = 0.01f}, on_cpu());
  EXPECT_EQ(found.sets, 5000);
  for (int64_t i = 0; i < 500; ++i) EXPECT_EQ(found.begin()[5000 + i], found.begin()[i]);
}

TEST(NearDuplicates, OfFewRows) {
  const float rows[] = {0, 0, 1, 1};
  EXPECT_EQ(near_duplicates(MatrixView(rows, 0, 2), {.radius = 1}, on_cpu()).sets, 0);
  EXPECT_EQ(near_duplicates(MatrixView(rows, 1, 2), {.radius = 1}, on_cpu()).sets, 1);
  EXPECT_EQ(near_duplicates(MatrixView(rows, 2, 2), {.radius = 1}, on_cpu()).sets, 2);
  EXPECT_EQ(near_duplicates(MatrixView(rows, 2, 2), {.radius = 2}, on_cpu()).sets, 1);
}

TEST(NearDuplicates, WhatIsRefused) {
  const float rows[] = {0, 0, 1, 1};
  const MatrixView x(rows, 2, 2);
  EXPECT_THROW(near_duplicates(x, {.radius = -1}, on_cpu()), InvalidArgument);
  EXPECT_THROW(near_duplicates(x, {.radius = std::numeric_limits<float>::quiet_NaN()}, on_cpu()), InvalidArgument);
  EXPECT_THROW(near_duplicates(x, {.radius = 1, .metric = Metric::inner_product}, on_cpu()), InvalidArgument);
  EXPECT_THROW(near_duplicates(x, {.radius = 1, .k = 0}, on_cpu()), InvalidArgument);
  EXPECT_THROW(near_duplicates(x, {.radius = 1, .recall = 0}, on_cpu()), InvalidArgument);
}

}  // namespace
}  // namespace kith
