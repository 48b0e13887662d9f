// The cores of the distance and inspection kernels, run on the CPU, against the plain canonical forms.
#include "cuda/thread_block.hpp"

#include "core/ordered_key.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/distance/distance_tile_cuda.hpp"
#include "kernels/distance/inspect_row_cuda.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

namespace kith {
namespace {

template <typename T>
constexpr DType kDtypeOf = std::is_same_v<T, uint8_t> ? DType::u8 : DType::f32;

template <typename T>
std::vector<T> random_values(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<T> values(count);
  for (T& value : values) {
    if constexpr (sizeof(T) == 1) {
      value = static_cast<T>(random());
    } else {
      value = static_cast<T>(std::ldexp(static_cast<double>(random()) - 2147483648.0, -28) + 3.0);
    }
  }
  return values;
}

template <typename T>
std::vector<double> inverse_norms(const std::vector<T>& values, int64_t stride, int64_t cols) {
  std::vector<double> norms;
  for (size_t first = 0; first < values.size(); first += static_cast<size_t>(stride)) {
    norms.push_back(inspect_row(values.data() + first, cols).inverse_norm);
  }
  return norms;
}

struct Shape {
  int64_t queries;
  int64_t rows;
  int64_t cols;
};

// All tiles of the shape, one block each, against canonical_pair.
template <KeyKind kKind, typename Q, typename X>
void expect_canonical(const Shape& shape, std::vector<Q> queries, std::vector<X> rows, int64_t padding = 0) {
  const auto [m, n, cols] = shape;
  const int64_t stride = cols + padding;
  const std::vector<double> query_norms = inverse_norms(queries, stride, cols);
  const std::vector<double> row_norms = inverse_norms(rows, stride, cols);
  const DeviceRowsView query_ref{queries.data(), kDtypeOf<Q>, stride, m, query_norms.data()};
  const DeviceRowsView row_ref{rows.data(), kDtypeOf<X>, stride, n, row_norms.data()};
  const int64_t key_stride = n + 3;
  constexpr uint32_t kUntouched = 0x12345678u;
  std::vector<uint32_t> keys(static_cast<size_t>(m * key_stride), kUntouched);
  for (int64_t query = 0; query < m; query += kTileQueries) {
    for (int64_t row = 0; row < n; row += kTileRows) {
      DistanceTileShared shared;
      run_block(kTileThreads, [&](ThreadBlock& block) {
        distance_tile<kKind>(block, shared, query_ref, row_ref, cols, query, row, keys.data(), key_stride);
      });
    }
  }
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const float key = canonical_pair<kKind>(queries.data() + i * stride, rows.data() + j * stride, cols);
      ASSERT_EQ(keys[static_cast<size_t>(i * key_stride + j)], ordered_key(key)) << "query " << i << " row " << j;
    }
    for (int64_t j = n; j < key_stride; ++j) ASSERT_EQ(keys[static_cast<size_t>(i * key_stride + j)], kUntouched);
  }
}

template <typename Q, typename X>
void expect_all_kinds(const Shape& shape, int64_t padding = 0) {
  SCOPED_TRACE(testing::Message() << shape.queries << " x " << shape.rows << " x " << shape.cols);
  const auto queries = random_values<Q>(static_cast<size_t>(shape.queries * (shape.cols + padding)), 1);
  const auto rows = random_values<X>(static_cast<size_t>(shape.rows * (shape.cols + padding)), 2);
  expect_canonical<KeyKind::squared_l2>(shape, queries, rows, padding);
  expect_canonical<KeyKind::inner_product>(shape, queries, rows, padding);
  expect_canonical<KeyKind::cosine>(shape, queries, rows, padding);
}

TEST(CudaDistanceModel, ColumnsAroundTheSlab) {
  for (const int64_t cols : {1, 3, 15, 16, 17, 31, 33, 100}) expect_all_kinds<float, float>({2, 3, cols});
}

TEST(CudaDistanceModel, RowsAndQueriesAroundTheTile) {
  for (const int64_t queries : {1, 16, 17}) {
    for (const int64_t rows : {1, 32, 33}) expect_all_kinds<float, float>({queries, rows, 5});
  }
}

TEST(CudaDistanceModel, EveryPairOfDtypes) {
  expect_all_kinds<uint8_t, uint8_t>({5, 40, 20});
  expect_all_kinds<uint8_t, float>({5, 40, 20});
  expect_all_kinds<float, uint8_t>({5, 40, 20});
}

TEST(CudaDistanceModel, RowsApart) { expect_all_kinds<float, uint8_t>({4, 35, 18}, 7); }

TEST(CudaDistanceModel, RowsByTheirNumbers) {
  constexpr int64_t kCols = 19;
  const auto queries = random_values<float>(3 * kCols, 5);
  const auto rows = random_values<uint8_t>(50 * kCols, 6);
  const std::vector<uint32_t> list = {1003, 1004, 1007, 1031, 1049};  // of rows 1000, 1001, ...
  const DeviceRowsView query_ref{queries.data(), DType::f32, kCols, 3, nullptr};
  const DeviceRowsView row_ref{rows.data(), DType::u8, kCols, 5, nullptr, list.data(), 1000};
  std::vector<uint32_t> keys(3 * 5);
  DistanceTileShared shared;
  run_block(kTileThreads, [&](ThreadBlock& block) {
    distance_tile<KeyKind::squared_l2>(block, shared, query_ref, row_ref, kCols, 0, 0, keys.data(), 5);
  });
  for (size_t q = 0; q < 3; ++q) {
    for (size_t i = 0; i < 5; ++i) {
      const float key = canonical_pair<KeyKind::squared_l2>(queries.data() + q * kCols,
                                                            rows.data() + (list[i] - 1000) * kCols, kCols);
      EXPECT_EQ(keys[q * 5 + i], ordered_key(key));
    }
  }
}

TEST(CudaDistanceModel, ZeroVectorsHugeAndTinyValues) {
  const Shape shape{3, 4, 17};
  std::vector<float> queries(3 * 17, 0.0f);
  std::vector<float> rows(4 * 17, 0.0f);
  for (int i = 0; i < 17; ++i) {
    queries[static_cast<size_t>(17 + i)] = 1e19f * static_cast<float>(i - 8);
    queries[static_cast<size_t>(34 + i)] = 1e-20f * static_cast<float>(i + 1);
    rows[static_cast<size_t>(17 + i)] = 3e38f;
    rows[static_cast<size_t>(34 + i)] = 1e-45f;
    rows[static_cast<size_t>(51 + i)] = 1e-20f * static_cast<float>(i + 1);
  }
  expect_canonical<KeyKind::squared_l2>(shape, queries, rows);
  expect_canonical<KeyKind::inner_product>(shape, queries, rows);
  expect_canonical<KeyKind::cosine>(shape, queries, rows);
}

TEST(CudaDistanceModel, NansAndInfinities) {
  const Shape shape{2, 5, 20};
  std::vector<float> queries = random_values<float>(2 * 20, 3);
  std::vector<float> rows = random_values<float>(5 * 20, 4);
  rows[20 + 3] = std::numeric_limits<float>::quiet_NaN();
  rows[40 + 19] = std::numeric_limits<float>::infinity();
  for (int i = 0; i < 20; ++i) rows[static_cast<size_t>(60 + i)] = 0.0f;
  queries[20] = -std::numeric_limits<float>::infinity();
  expect_canonical<KeyKind::squared_l2>(shape, queries, rows);
  expect_canonical<KeyKind::inner_product>(shape, queries, rows);
  expect_canonical<KeyKind::cosine>(shape, queries, rows);
}

TEST(CudaInspectModel, NormsAreCanonical) {
  for (const int64_t cols : {1, 15, 16, 17, 129}) {
    const auto values = random_values<float>(static_cast<size_t>(cols), 7);
    const RowFacts facts = inspect_row(values.data(), cols);
    EXPECT_TRUE(facts.finite);
    EXPECT_EQ(facts.inverse_norm, canonical_inverse_norm(canonical_squared_norm(values.data(), cols))) << cols;
  }
  const std::vector<uint8_t> zero(17, 0);
  EXPECT_EQ(inspect_row(zero.data(), 17).inverse_norm, 0.0);
}

TEST(CudaInspectModel, FindsWhatIsNotFiniteInAnyColumn) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    for (int64_t column = 0; column < 33; ++column) {
      std::vector<float> values(33, std::numeric_limits<float>::max());
      EXPECT_TRUE(inspect_row(values.data(), 33).finite);
      values[static_cast<size_t>(column)] = bad;
      EXPECT_FALSE(inspect_row(values.data(), 33).finite) << bad << " in column " << column;
    }
  }
}

TEST(CudaInspectModel, FindsValuesBelowZero) {
  for (int column = 0; column < 33; ++column) {
    std::vector<float> values(33, 0.5f);
    EXPECT_FALSE(inspect_row(values.data(), 33).negative);
    values[static_cast<size_t>(column)] = -1e-40f;
    EXPECT_TRUE(inspect_row(values.data(), 33).negative);
    values[static_cast<size_t>(column)] = -0.0f;
    EXPECT_FALSE(inspect_row(values.data(), 33).negative);
  }
}

}  // namespace
}  // namespace kith
