#include <kith/pairwise_distances.hpp>

#include <kith/error.hpp>

#include "exact/exact_check.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace kith {
namespace {

using reference::make_bytes;
using reference::make_floats;
using reference::Shape;
using reference::stored_as;
using reference::without_sign;

template <typename X, typename Y>
void check_pairs(const reference::Matrix<X>& x, const reference::Matrix<Y>& y, Metric metric,
                 const Resources& resources = on_cpu()) {
  const MatrixBuffer found = pairwise_distances(x.view(), y.view(), {metric}, resources);
  ASSERT_EQ(found.rows(), x.rows);
  ASSERT_EQ(found.cols(), y.rows);
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t j = 0; j < y.rows; ++j) {
      float truth = reference::canonical(metric, x.row(i), y.row(j), x.cols);
      if (metric == Metric::inner_product) truth = 0.0f - truth;
      ASSERT_EQ(reinterpret_cast<const float*>(found.view().row(i))[j], truth)
          << name_of(metric) << " " << i << " " << j;
    }
  }
}

TEST(PairwiseDistances, AreTheReportedOnes) {
  for (const Metric metric : {Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::cosine, Metric::l1,
                              Metric::linf, Metric::chi_square}) {
    const auto x = without_sign(make_floats(Shape::with_zeros, 70, 19, 1));
    const auto y = without_sign(make_floats(Shape::gaussian, 300, 19, 2));
    check_pairs(x, y, metric);
    check_pairs(stored_as<Half>(x), stored_as<uint8_t>(y), metric);
  }
  check_pairs(make_bytes(5, 9, 1), make_bytes(257, 9, 2), Metric::hamming);
}

// A half of the distances of rows to themselves is computed, in blocks that begin at the diagonal, and copied.
TEST(PairwiseDistances, OfRowsToThemselvesAreThoseToACopy) {
  for (const int64_t rows : {1, 215, 217, 512, 700, 1100}) {
    for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine, Metric::linf, Metric::chi_square}) {
      const auto x = without_sign(make_floats(Shape::with_zeros, rows, 19, 1));
      const auto same = x;
      const auto halves = stored_as<Half>(x);
      const auto same_halves = halves;
      const auto check = [&](const MatrixView& one, const MatrixView& other, const Resources& resources) {
        const MatrixBuffer found = pairwise_distances(one, one, {metric}, resources);
        const MatrixBuffer truth = pairwise_distances(one, other, {metric}, resources);
        for (int64_t i = 0; i < rows; ++i) {
          ASSERT_EQ(std::memcmp(found.view().row(i), truth.view().row(i), static_cast<size_t>(rows) * 4), 0)
              << name_of(metric) << " " << rows << " " << i;
        }
      };
      check(x.view(), same.view(), on_cpu());
      check(halves.view(), same_halves.view(), on_cpu(3));
    }
  }
}

// 64 rows lie side by side where columns are few: one that is not finite must not be seen in those that come after it.
TEST(PairwiseDistances, ARowThatIsNotFiniteIsItsOwn) {
  for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine, Metric::l1}) {
    for (const int64_t cols : {1, 3, 5, 13}) {
      const auto x = make_floats(Shape::gaussian, 4, cols, 1);
      auto y = make_floats(Shape::gaussian, 200, cols, 2);
      y.row(5)[0] = NAN;
      y.row(70)[cols - 1] = HUGE_VALF;
      PairwiseParams params;
      params.metric = metric;
      params.check_finite = false;
      const MatrixBuffer found = pairwise_distances(x.view(), y.view(), params, on_cpu());
      for (int64_t j = 0; j < y.rows; ++j) {
        if (j == 5 || j == 70) continue;
        float truth = reference::canonical(metric, x.row(1), y.row(j), cols);
        if (metric == Metric::inner_product) truth = 0.0f - truth;
        ASSERT_EQ(reinterpret_cast<const float*>(found.view().row(1))[j], truth) << name_of(metric) << " " << j;
      }
    }
  }
}

TEST(PairwiseDistances, NeedLittleBesideTheResult) {
  const auto x = make_floats(Shape::gaussian, 20, 784, 1);
  const auto y = make_floats(Shape::gaussian, 30, 784, 2);
  constexpr int64_t kResult = 20 * 30 * 4;
  check_pairs(x, y, Metric::l2, on_cpu(2, kResult));
  check_pairs(stored_as<Half>(x), y, Metric::cosine,
              on_cpu(2, kResult + 2 * 784 * 4));  // a widened row for each thread
  EXPECT_THROW(pairwise_distances(x.view(), y.view(), {}, on_cpu(2, kResult - 1)), OutOfMemory);
}

TEST(PairwiseDistances, RefuseWhatTheyCannotDo) {
  auto x = make_floats(Shape::gaussian, 4, 3, 1);
  const auto y = make_floats(Shape::gaussian, 5, 4, 1);
  EXPECT_THROW(pairwise_distances(x.view(), y.view(), {}, on_cpu()), InvalidArgument);
  EXPECT_THROW(pairwise_distances(x.view(), x.view(), {Metric::chi_square}, on_cpu()), InvalidArgument);
  x.row(2)[1] = NAN;
  EXPECT_THROW(pairwise_distances(x.view(), x.view(), {}, on_cpu()), InvalidArgument);
  const MatrixBuffer found = pairwise_distances(x.view(), x.view(), {Metric::l2, false}, on_cpu());
  EXPECT_TRUE(std::isnan(reinterpret_cast<const float*>(found.view().row(2))[0]));
  EXPECT_EQ(pairwise_distances(y.view().slice(0, 0), y.view(), {}, on_cpu()).rows(), 0);
}

}  // namespace
}  // namespace kith
