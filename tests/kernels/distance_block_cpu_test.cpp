// Blocks of pairs and rows by number have the bits of the plain form, pair by pair.
#include "kernels/distance/distance_block_cpu.hpp"

#include <kith/host_buffer.hpp>

#include "kernels/forced_target.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

namespace kith {
namespace {

using reference::make_bytes;
using reference::make_floats;
using reference::Matrix;
using reference::Shape;
using reference::stored_as;
using reference::without_sign;

constexpr Metric kMetrics[] = {Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::cosine,
                               Metric::l1, Metric::linf,        Metric::chi_square};

bool same_bits(float a, float b) { return (std::isnan(a) && std::isnan(b)) || std::memcmp(&a, &b, sizeof a) == 0; }

// With every instruction set in turn, the keys of all pairs both ways.
template <typename X>
void expect_canonical(Metric metric, const Matrix<float>& queries, const Matrix<X>& base) {
  std::vector<float> expected;
  for (int64_t q = 0; q < queries.rows; ++q) {
    for (int64_t i = 0; i < base.rows; ++i) {
      expected.push_back(reference::canonical(metric, queries.row(q), base.row(i), base.cols));
    }
  }
  const int64_t stride = base.rows + 3;
  const HostBuffer scratch(canonical_block_bytes(base.cols), "a test", Resources());
  std::vector<uint32_t> numbers(static_cast<size_t>(base.rows));
  std::iota(numbers.begin(), numbers.end(), 0u);
  for (const std::string& target : targets_for_next_case()) {
    const ForcedTarget forced(target);
    std::vector<double> inverses(static_cast<size_t>(queries.rows));
    canonical_inverse_norms_cpu(queries.view(), inverses.data());
    std::vector<CanonicalQuery> canonical;
    for (int64_t q = 0; q < queries.rows; ++q) {
      canonical.push_back({queries.row(q), inverses[static_cast<size_t>(q)]});
    }
    constexpr float kUntouched = -12345.0f;
    std::vector<float> block(static_cast<size_t>(queries.rows * stride), kUntouched);
    canonical_block_cpu({key_kind(metric), canonical.data(), queries.rows, base.view(), block.data(), stride},
                        scratch.data());
    std::vector<float> rows(static_cast<size_t>(base.rows));
    for (int64_t q = 0; q < queries.rows; ++q) {
      canonical_keys_cpu(key_kind(metric), canonical[static_cast<size_t>(q)], base.view(), numbers.data(), base.rows,
                         rows.data());
      for (int64_t i = 0; i < base.rows; ++i) {
        const float truth = expected[static_cast<size_t>(q * base.rows + i)];
        ASSERT_TRUE(same_bits(block[static_cast<size_t>(q * stride + i)], truth))
            << target << " " << name_of(metric) << " cols " << base.cols << " query " << q << " row " << i << ": "
            << block[static_cast<size_t>(q * stride + i)] << " for " << truth;
        ASSERT_TRUE(same_bits(rows[static_cast<size_t>(i)], truth))
            << target << " " << name_of(metric) << " cols " << base.cols << " query " << q << " row " << i
            << ", by number: " << rows[static_cast<size_t>(i)] << " for " << truth;
      }
      for (int64_t i = base.rows; i < stride; ++i) ASSERT_EQ(block[static_cast<size_t>(q * stride + i)], kUntouched);
    }
  }
}

Matrix<float> floats_for(Metric metric, Shape shape, int64_t rows, int64_t cols, uint64_t seed) {
  auto floats = make_floats(shape, rows, cols, seed);
  return metric == Metric::chi_square ? without_sign(std::move(floats)) : floats;
}

TEST(DistanceBlockCpu, HasTheCanonicalBitsWhateverTheColumns) {
  std::vector<int64_t> columns = {63, 64, 65, 127, 128, 129, 130, 784, 1023, 1024, 1025, 1040, 2055};
  for (int64_t cols = 1; cols <= 40; ++cols) columns.push_back(cols);
  for (const Metric metric : kMetrics) {
    for (const int64_t cols : columns) {
      const int64_t queries = 3 + cols % 7;
      const int64_t rows = cols > 200 ? 13 : 30 + cols % 9;
      expect_canonical(metric, floats_for(metric, Shape::gaussian, queries, cols, 1),
                       floats_for(metric, Shape::gaussian, rows, cols, 2));
    }
  }
}

TEST(DistanceBlockCpu, HasTheCanonicalBitsOfManyRowsOfManyColumns) {
  for (const Metric metric : {Metric::l2, Metric::cosine, Metric::linf}) {
    auto base = floats_for(metric, Shape::gaussian, 501, 1030, 11);
    const auto queries = floats_for(metric, Shape::gaussian, 7, 1030, 12);
    for (const int64_t row : {0, 250, 480, 500}) std::copy_n(queries.row(row % 7), 1030, base.row(row));
    expect_canonical(metric, queries, base);  // some are equal: no interval tells these
  }
}

TEST(DistanceBlockCpu, HasTheCanonicalBitsForAnyNumberOfQueriesAndRows) {
  for (const Metric metric : kMetrics) {
    for (const int64_t queries : {1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 50}) {
      for (const int64_t rows : {1, 3, 8, 31, 32, 33, 65}) {
        expect_canonical(metric, floats_for(metric, Shape::with_zeros, queries, 29, 3),
                         floats_for(metric, Shape::gaussian, rows, 29, 4));
      }
    }
  }
}

TEST(DistanceBlockCpu, HasTheCanonicalBitsOfFewColumnsForFewQueries) {
  for (const Metric metric : kMetrics) {
    for (int64_t cols = 1; cols <= 17; ++cols) {
      for (const int64_t queries : {1, 2, 5}) {
        const auto some = floats_for(metric, Shape::with_zeros, queries, cols, 13);
        for (const int64_t rows : {2, 64, 131}) {
          expect_canonical(metric, some, floats_for(metric, Shape::with_zeros, rows, cols, 14));
        }
        expect_canonical(metric, some, stored_as<uint8_t>(floats_for(metric, Shape::gaussian, 70, cols, 15)));
      }
    }
  }
}

TEST(DistanceBlockCpu, TakesRowsThatLieApart) {
  constexpr int64_t kRows = 70;
  for (const int64_t cols : {1, 2, 3, 4, 7, 16}) {
    const auto wide = make_floats(Shape::gaussian, kRows, cols + 3, 16);
    const auto queries = make_floats(Shape::gaussian, 2, cols, 17);
    const MatrixView rows(wide.row(0), DType::f32, {kRows, cols, cols + 3});
    const CanonicalQuery canonical[] = {{queries.row(0), 0.0}, {queries.row(1), 0.0}};
    std::vector<float> keys(2 * kRows);
    canonical_block_cpu({KeyKind::l1, canonical, 2, rows, keys.data(), kRows}, nullptr);
    for (int64_t q = 0; q < 2; ++q) {
      for (int64_t i = 0; i < kRows; ++i) {
        EXPECT_EQ(keys[static_cast<size_t>(q * kRows + i)],
                  reference::canonical(Metric::l1, queries.row(q), wide.row(i), cols));
      }
    }
  }
}

TEST(DistanceBlockCpu, HasTheCanonicalBitsOfHardDataInEveryDtype) {
  for (const Metric metric : kMetrics) {
    for (const Shape shape : reference::kAllShapes) {
      for (const int64_t cols : {5, 33, 66}) {
        const auto queries = floats_for(metric, shape, 7, cols, 5);
        const auto base = floats_for(metric, shape, 37, cols, 6);
        expect_canonical(metric, queries, base);
        expect_canonical(metric, base, base);  // pairs of equal vectors among others
        expect_canonical(metric, queries, stored_as<Half>(base));
        expect_canonical(metric, queries, stored_as<BFloat16>(base));
        expect_canonical(metric, queries, stored_as<uint8_t>(base));
        if (metric != Metric::chi_square) expect_canonical(metric, queries, stored_as<int8_t>(base));
      }
    }
  }
  for (const int64_t cols : {1, 9, 1100}) {
    const auto bytes = make_bytes(5, cols, 7);
    Matrix<float> queries(5, cols);
    std::copy(bytes.values.begin(), bytes.values.end(), queries.values.begin());
    expect_canonical(Metric::hamming, queries, make_bytes(21, cols, 8));
  }
}

TEST(DistanceBlockCpu, KeepsNanInfinityZerosAndSubnormals) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float special[] = {NAN, kInfinity, -kInfinity, -0.0f, 0.0f, 1e-45f, -1e-45f, 3e38f, -3e38f, 1e-39f};
  for (const Metric metric : kMetrics) {
    if (metric == Metric::chi_square) continue;  // refuses them
    for (const int64_t cols : {1, 7, 16, 35}) {
      auto queries = make_floats(Shape::gaussian, 9, cols, 9);
      auto base = make_floats(Shape::gaussian, 40, cols, 10);
      for (int64_t i = 0; i < base.rows; i += 2) base.row(i)[i % cols] = special[i / 2 % 10];
      for (int64_t q = 0; q < queries.rows; q += 2) queries.row(q)[q % cols] = special[(q / 2 + 2) % 10];
      for (int64_t c = 0; c < cols; ++c) base.row(11)[c] = queries.row(1)[c] = c % 2 == 0 ? -0.0f : 0.0f;
      expect_canonical(metric, queries, base);
    }
  }
}

}  // namespace
}  // namespace kith
