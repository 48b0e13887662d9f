#include "kernels/distance/distance_cpu.hpp"
#include "kernels/distance/scan_rows_cpu.hpp"
#include "kernels/forced_target.hpp"
#include "reference/data.hpp"
#include "rows/stored_row.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>

namespace kith {
namespace {

using reference::make_bytes;
using reference::make_floats;
using reference::Shape;

constexpr int64_t kCols[] = {1, 2, 3, 15, 16, 17, 31, 33, 100, 128, 129, 784};

template <typename X>
void expect_canonical_keys(Metric metric, const reference::Matrix<float>& queries, const reference::Matrix<X>& base) {
  std::vector<uint32_t> rows(static_cast<size_t>(base.rows));
  std::iota(rows.rbegin(), rows.rend(), 0u);
  std::vector<float> keys(rows.size());
  for (int64_t q = 0; q < queries.rows; ++q) {
    const double inverse = canonical_inverse_norm(canonical_squared_norm_cpu(queries.row(q), queries.cols));
    canonical_keys_cpu(key_kind(metric), {queries.row(q), inverse}, base.view(), rows.data(), base.rows, keys.data());
    for (size_t i = 0; i < rows.size(); ++i) {
      const float expected = reference::canonical(metric, queries.row(q), base.row(rows[i]), base.cols);
      ASSERT_EQ(std::memcmp(&keys[i], &expected, sizeof expected), 0)
          << name_of(metric) << " cols " << base.cols << " row " << rows[i] << ": " << keys[i] << " for " << expected;
    }
  }
}

TEST(DistanceCpu, HasTheCanonicalBitsWithEveryInstructionSet) {
  for (const std::string& target : cpu_targets()) {
    SCOPED_TRACE(target);
    const ForcedTarget forced(target);
    for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine}) {
      for (const int64_t cols : kCols) {
        for (const Shape shape : reference::kAllShapes) {
          expect_canonical_keys(metric, make_floats(shape, 3, cols, 1), make_floats(shape, 11, cols, 2));
        }
        expect_canonical_keys(metric, make_floats(Shape::gaussian, 3, cols, 1), make_bytes(11, cols, 2));
      }
    }
  }
}

TEST(DistanceCpu, TheCanonicalDistanceIsTheFloat64OneRoundedOnce) {
  for (const Metric metric : {Metric::sqeuclidean, Metric::inner_product, Metric::cosine}) {
    for (const int64_t cols : kCols) {
      const auto queries = make_floats(Shape::far_mean, 4, cols, 1);
      const auto base = make_floats(Shape::far_mean, 40, cols, 2);
      for (int64_t q = 0; q < queries.rows; ++q) {
        for (int64_t i = 0; i < base.rows; ++i) {
          const float key = reference::canonical(metric, queries.row(q), base.row(i), cols);
          double truth = reference::distance(metric, queries.row(q), base.row(i), cols);
          if (metric == Metric::inner_product) truth = -truth;
          const double slack = metric == Metric::cosine ? 1e-13 : 0;  // the plain formula of the truth cancels
          EXPECT_NEAR(key, truth, std::abs(truth) * 0x1p-23 + slack);
        }
      }
    }
  }
}

TEST(DistanceCpu, CosineOfEqualAndScaledVectorsIsZeroAndOfZeroVectorsOne) {
  const auto rows = make_floats(Shape::gaussian, 2, 33, 5);
  auto twice = rows;
  for (float& value : twice.values) value *= 2;
  const reference::Matrix<float> zeros(1, 33);
  EXPECT_EQ(reference::canonical(Metric::cosine, rows.row(0), rows.row(0), 33), 0.0f);
  EXPECT_EQ(reference::canonical(Metric::cosine, rows.row(0), twice.row(0), 33), 0.0f);
  EXPECT_EQ(reference::canonical(Metric::cosine, rows.row(0), zeros.row(0), 33), 1.0f);
  EXPECT_EQ(reference::canonical(Metric::cosine, zeros.row(0), zeros.row(0), 33), 1.0f);
}

TEST(DistanceCpu, TheFastScanGivesSumsAndNorms) {
  for (const std::string& target : cpu_targets()) {
    SCOPED_TRACE(target);
    const ForcedTarget forced(target);
    for (const int64_t cols : kCols) {
      const auto query = make_floats(Shape::gaussian, 1, cols, 1);
      const auto base = make_floats(Shape::gaussian, 13, cols, 2);
      std::vector<float> values(13), norms(13);
      scan_rows_cpu(KeyKind::squared_l2, query.row(0), base.view(), values.data(), nullptr);
      for (int64_t i = 0; i < 13; ++i) {
        const double truth = reference::distance(Metric::sqeuclidean, query.row(0), base.row(i), cols);
        EXPECT_NEAR(values[static_cast<size_t>(i)], truth, truth * 1e-4);
      }
      scan_rows_cpu(KeyKind::inner_product, query.row(0), base.view(), values.data(), norms.data());
      for (int64_t i = 0; i < 13; ++i) {
        const double norm = reference::distance(Metric::inner_product, base.row(i), base.row(i), cols);
        EXPECT_NEAR(values[static_cast<size_t>(i)],
                    reference::distance(Metric::inner_product, query.row(0), base.row(i), cols), 1e-3);
        EXPECT_NEAR(norms[static_cast<size_t>(i)], norm, norm * 1e-4);
      }
      std::vector<float> alone(13);
      scan_rows_cpu(KeyKind::cosine, query.row(0), base.view(), alone.data(), nullptr);
      for (size_t i = 0; i < 13; ++i) EXPECT_NEAR(alone[i], values[i], 1e-3);
    }
  }
}

// The same of signed bytes, where there is a scan of them.
TEST(DistanceCpu, TheScanOfSignedBytesIsExact) {
  for (const std::string& target : cpu_targets()) {
    SCOPED_TRACE(target);
    const ForcedTarget forced(target);
    if (!has_byte_scan()) continue;
    for (const int64_t cols : {24, 31, 32, 127, 130}) {
      const auto query = reference::make_bytes(1, cols, 5);
      const auto base = reference::make_bytes(9, cols, 6);
      const MatrixView rows(base.row(0), DType::i8, {9, cols, cols});
      std::vector<float> apart(9), products(9), squares(9);
      scan_byte_rows_cpu(KeyKind::squared_l2, query.row(0), 1, rows, apart.data(), nullptr);
      scan_byte_rows_cpu(KeyKind::inner_product, query.row(0), 0.5f, rows, products.data(), squares.data());
      for (size_t i = 0; i < 9; ++i) {
        int64_t difference = 0, product = 0, square = 0;
        for (int64_t c = 0; c < cols; ++c) {
          const int64_t q = static_cast<int8_t>(query.row(0)[c]);
          const int64_t x = static_cast<int8_t>(base.row(static_cast<int64_t>(i))[c]);
          difference += (q - x) * (q - x);
          product += q * x;
          square += x * x;
        }
        ASSERT_EQ(apart[i], static_cast<float>(difference)) << cols << " columns, row " << i;
        ASSERT_EQ(products[i], 0.5f * static_cast<float>(product)) << cols << " columns, row " << i;
        ASSERT_EQ(squares[i], static_cast<float>(square)) << cols << " columns, row " << i;
      }
    }
  }
}

// Whole numbers below 2^24 are exact.
TEST(DistanceCpu, TheScanOfBytesIsExact) {
  for (const std::string& target : cpu_targets()) {
    SCOPED_TRACE(target);
    const ForcedTarget forced(target);
    if (!has_byte_scan()) continue;
    for (const int64_t cols : {16, 20, 24, 31, 32, 33, 64, 65, 127, 130, 250}) {
      if (cols < kFewestDotColumns) continue;
      const auto query = reference::make_bytes(1, cols, 5);
      for (const int64_t rows : {1, 7, 8, 9, 16, 37}) {
        const auto base = reference::make_bytes(rows, cols, 6);
        const auto size = static_cast<size_t>(rows);
        std::vector<float> apart(size + 1, -1), products(size + 1, -1), squares(size + 1, -1);
        scan_byte_rows_cpu(KeyKind::squared_l2, query.row(0), 1, base.view(), apart.data(), nullptr);
        scan_byte_rows_cpu(KeyKind::inner_product, query.row(0), 0.5f, base.view(), products.data(), nullptr);
        const std::vector<float> alone = products;
        scan_byte_rows_cpu(KeyKind::inner_product, query.row(0), 0.5f, base.view(), products.data(), squares.data());
        EXPECT_EQ(products, alone);
        for (size_t i = 0; i < size; ++i) {
          int64_t difference = 0, product = 0, square = 0;
          for (int64_t c = 0; c < cols; ++c) {
            const int64_t q = query.row(0)[c], x = base.row(static_cast<int64_t>(i))[c];
            difference += (q - x) * (q - x);
            product += q * x;
            square += x * x;
          }
          ASSERT_EQ(apart[i], static_cast<float>(difference)) << cols << " columns, row " << i << " of " << rows;
          ASSERT_EQ(products[i], 0.5f * static_cast<float>(product)) << cols << " columns, row " << i << " of " << rows;
          ASSERT_EQ(squares[i], static_cast<float>(square)) << cols << " columns, row " << i << " of " << rows;
        }
        EXPECT_EQ(apart[size], -1);  // nothing is written past the last
        EXPECT_EQ(products[size], -1);
        EXPECT_EQ(squares[size], -1);
      }
    }
  }
}

TEST(DistanceCpu, AnyValueThatIsNotFiniteShowsInTheFastScan) {
  for (const int64_t cols : kCols) {
    for (const float bad : {NAN, INFINITY, -INFINITY}) {
      for (const KeyKind kind : {KeyKind::squared_l2, KeyKind::inner_product}) {
        const reference::Matrix<float> query(1, cols);  // zeros, the hardest to see an infinity through
        auto base = make_floats(Shape::gaussian, 5, cols, 2);
        base.row(3)[cols - 1] = bad;
        std::vector<float> values(5), norms(5);
        scan_rows_cpu(kind, query.row(0), base.view(), values.data(), norms.data());
        EXPECT_FALSE(std::isfinite(values[3]));
        EXPECT_TRUE(std::isfinite(values[2]));
        EXPECT_FALSE(row_is_finite(base.view(), 3));
        EXPECT_TRUE(row_is_finite(base.view(), 2));
      }
    }
  }
}

}  // namespace
}  // namespace kith
