// The cores of the distance and inspection kernels, run on the CPU, against the plain canonical forms.
#include "cuda/thread_block.hpp"

#include "core/ordered_key.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/distance/certain_key.hpp"
#include "kernels/distance/distance_tile_cuda.hpp"
#include "kernels/distance/inspect_row_cuda.hpp"

#include <gtest/gtest.h>

#include <algorithm>
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

struct TaskShape {
  int64_t queries;
  int64_t rows;
  int64_t cols;
};

// Goes over all tiles of a task, one block each.
template <typename Shared, typename Tile>
void run_tiles(const DistanceTask& task, int queries, int rows, int threads, const Tile& tile) {
  for (int64_t query = 0; query < task.queries.count; query += queries) {
    for (int64_t row = 0; row < task.rows.count; row += rows) {
      Shared shared;
      run_block(threads, [&](ThreadBlock& block) { tile(block, shared, query, row); });
    }
  }
}

template <KeyKind kStep, int kLanes>
void run_few_columns(const DistanceTask& task) {
  run_tiles<FewColumnsShared<kLanes>>(task, kFewQueries, kFewThreads, kFewThreads,
                                      [&](auto& block, auto& shared, int64_t query, int64_t row) {
                                        few_columns_tile<kStep, kLanes>(block, shared, task, query, row);
                                      });
}

// Every core that can do the task; hamming has its own.
template <KeyKind kKind, typename Check>
void run_cores(const DistanceTask& task, const Check& check) {
  constexpr KeyKind kStep = step_kind(kKind);
  if constexpr (kKind == KeyKind::hamming) {
    run_tiles<BitTileShared>(
        task, kBitTile, kBitTile, kBitThreads,
        [&](auto& block, auto& shared, int64_t query, int64_t row) { bit_tile(block, shared, task, query, row); });
    check("bits");
  } else {
    run_tiles<DistanceTileShared>(task, kTileQueries, kTileRows, kTileThreads,
                                  [&](auto& block, auto& shared, int64_t query, int64_t row) {
                                    distance_tile<kStep>(block, shared, task, query, row);
                                  });
    check("lanes");
    if (task.cols > 16) return;
    if (task.cols <= 2) {
      run_few_columns<kStep, 2>(task);
    } else if (task.cols <= 4) {
      run_few_columns<kStep, 4>(task);
    } else if (task.cols <= 8) {
      run_few_columns<kStep, 8>(task);
    } else {
      run_few_columns<kStep, 16>(task);
    }
    check("few columns");
  }
}

template <KeyKind kKind, typename Q, typename X>
void expect_canonical(const TaskShape& shape, std::vector<Q> queries, std::vector<X> rows, int64_t padding = 0) {
  const auto [m, n, cols] = shape;
  const int64_t stride = cols + padding;
  const std::vector<double> query_norms = inverse_norms(queries, stride, cols);
  const std::vector<double> row_norms = inverse_norms(rows, stride, cols);
  const int64_t key_stride = n + 3;
  constexpr uint32_t kUntouched = 0x12345678u;
  std::vector<uint32_t> keys(static_cast<size_t>(m * key_stride), kUntouched);
  const DistanceTask task{{queries.data(), kDtypeOf<Q>, stride, m, query_norms.data()},
                          {rows.data(), kDtypeOf<X>, stride, n, row_norms.data()},
                          cols,
                          kKind,
                          keys.data(),
                          key_stride};
  run_cores<kKind>(task, [&](const char* core) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        const float key = canonical_pair<kKind>(queries.data() + i * stride, rows.data() + j * stride, cols);
        ASSERT_EQ(keys[static_cast<size_t>(i * key_stride + j)], ordered_key(key))
            << core << ", query " << i << " row " << j;
      }
      for (int64_t j = n; j < key_stride; ++j) ASSERT_EQ(keys[static_cast<size_t>(i * key_stride + j)], kUntouched);
    }
    std::fill(keys.begin(), keys.end(), kUntouched);
  });
}

template <typename Q, typename X>
void expect_all_kinds(const TaskShape& shape, int64_t padding = 0) {
  SCOPED_TRACE(::testing::Message() << shape.queries << " x " << shape.rows << " x " << shape.cols);
  const auto queries = random_values<Q>(static_cast<size_t>(shape.queries * (shape.cols + padding)), 1);
  const auto rows = random_values<X>(static_cast<size_t>(shape.rows * (shape.cols + padding)), 2);
  expect_canonical<KeyKind::squared_l2>(shape, queries, rows, padding);
  expect_canonical<KeyKind::inner_product>(shape, queries, rows, padding);
  expect_canonical<KeyKind::cosine>(shape, queries, rows, padding);
}

TEST(CudaDistanceModel, ColumnsAroundTheSlab) {
  for (const int64_t cols : {1, 2, 3, 4, 7, 9, 15, 16, 17, 31, 32, 33, 48, 49, 100}) {
    expect_all_kinds<float, float>({2, 3, cols});
  }
}

TEST(CudaDistanceModel, EveryKind) {
  for (const int64_t cols : {3, 5, 16, 40}) {
    SCOPED_TRACE(cols);
    const TaskShape shape{3, 35, cols};
    const auto queries = random_values<float>(static_cast<size_t>(3 * cols), 8);
    const auto rows = random_values<float>(static_cast<size_t>(35 * cols), 9);
    expect_canonical<KeyKind::l2>(shape, queries, rows);
    expect_canonical<KeyKind::l1>(shape, queries, rows);
    expect_canonical<KeyKind::linf>(shape, queries, rows);
    const auto positive_queries = random_values<uint8_t>(static_cast<size_t>(3 * cols), 8);
    const auto positive_rows = random_values<uint8_t>(static_cast<size_t>(35 * cols), 9);
    expect_canonical<KeyKind::chi_square>(shape, positive_queries, positive_rows);
  }
}

TEST(CudaDistanceModel, Bits) {
  for (const int64_t cols : {1, 15, 16, 17, 63, 64, 65, 130}) {
    SCOPED_TRACE(cols);
    for (const int64_t padding : {int64_t{0}, 16 - cols % 16}) {
      const auto queries = random_values<uint8_t>(static_cast<size_t>(65 * (cols + padding)), 1);
      const auto rows = random_values<uint8_t>(static_cast<size_t>(66 * (cols + padding)), 2);
      expect_canonical<KeyKind::hamming>({65, 66, cols}, queries, rows, padding);
    }
  }
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
  std::vector<uint32_t> keys(3 * 5);
  const DistanceTask task{{queries.data(), DType::f32, kCols, 3, nullptr},
                          {rows.data(), DType::u8, kCols, 5, nullptr, list.data(), 1000},
                          kCols,
                          KeyKind::squared_l2,
                          keys.data(),
                          5};
  DistanceTileShared shared;
  run_block(kTileThreads, [&](ThreadBlock& block) { distance_tile<KeyKind::squared_l2>(block, shared, task, 0, 0); });
  for (size_t q = 0; q < 3; ++q) {
    for (size_t i = 0; i < 5; ++i) {
      const float key = canonical_pair<KeyKind::squared_l2>(queries.data() + q * kCols,
                                                            rows.data() + (list[i] - 1000) * kCols, kCols);
      EXPECT_EQ(keys[q * 5 + i], ordered_key(key));
    }
  }
}

TEST(CudaDistanceModel, ZeroVectorsHugeAndTinyValues) {
  const TaskShape shape{3, 4, 17};
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
  const TaskShape shape{2, 5, 20};
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

// Products and norms in another order than the canonical one.
struct PlainSums {
  double product = 0;
  double nq = 0;
  double nx = 0;
};

template <KeyKind kKind>
int count_certain(const std::vector<float>& q, const std::vector<float>& x, int64_t cols) {
  int certain = 0;
  const auto count = static_cast<int64_t>(q.size()) / cols;
  for (int64_t i = 0; i < count; ++i) {
    const float* const a = q.data() + i * cols;
    const float* const b = x.data() + i * cols;
    const bool cosine = kKind == KeyKind::cosine;
    const double scale_a = cosine ? canonical_inverse_norm(canonical_squared_norm(a, cols)) : 1.0;
    const double scale_b = cosine ? canonical_inverse_norm(canonical_squared_norm(b, cols)) : 1.0;
    PlainSums sums;
    for (int64_t c = cols - 1; c >= 0; --c) {
      const double qc = a[c];
      const double xc = b[c];
      sums.product += qc * xc;
      sums.nq += qc * qc;
      sums.nx += xc * xc;
    }
    if (cosine) sums = {sums.product * (scale_a * scale_b), scale_a == 0 ? 0.0 : 1.0, scale_b == 0 ? 0.0 : 1.0};
    const bool product = kKind == KeyKind::inner_product;
    const double size = product ? std::sqrt(sums.nq) * std::sqrt(sums.nx) : sums.nq + sums.nx;
    const CertainKey found = certain_key<kKind>(sums.product, sums.nq, sums.nx, certain_error(cols) * size);
    const CertainKey quick = certain_key<kKind, true>(sums.product, sums.nq, sums.nx, certain_error(cols) * size);
    if (quick.certain) {
      EXPECT_TRUE(found.certain);
      EXPECT_EQ(found.key, quick.key);
    }
    if (!found.certain) continue;
    ++certain;
    const float expected = canonical_pair<kKind>(a, b, cols);
    EXPECT_EQ(ordered_key(found.key), ordered_key(expected)) << "pair " << i << ", " << found.key << ", " << expected;
  }
  return certain;
}

TEST(CertainKey, IsTheCanonicalOneAndSeldomMissing) {
  constexpr int kPairs = 1000;
  for (const int64_t cols : {17, 64, 200}) {
    for (const double scale : {1.0, 1e-25, 1e-17, 1e17, 1e30}) {
      SCOPED_TRACE(::testing::Message() << cols << " columns, times " << scale);
      auto q = random_values<float>(static_cast<size_t>(kPairs * cols), 21);
      auto x = random_values<float>(static_cast<size_t>(kPairs * cols), 22);
      for (float& value : q) value = static_cast<float>(value * scale);
      for (float& value : x) value = static_cast<float>(value * scale);
      EXPECT_GT(count_certain<KeyKind::l2>(q, x, cols), kPairs - 10);
      EXPECT_GT(count_certain<KeyKind::squared_l2>(q, x, cols), kPairs - 10);
      EXPECT_GT(count_certain<KeyKind::inner_product>(q, x, cols), kPairs - 10);
      EXPECT_GT(count_certain<KeyKind::cosine>(q, x, cols), kPairs - 10);
    }
  }
}

TEST(CertainKey, NearVectorsAreLeftToTheCanonicalSum) {
  constexpr int64_t kCols = 40;
  constexpr int kPairs = 2000;
  const auto q = random_values<float>(static_cast<size_t>(kPairs * kCols), 23);
  for (const float apart : {0.0f, 1e-7f, 1e-5f, 1e-3f}) {
    auto x = q;
    for (size_t i = 0; i < x.size(); i += 7) x[i] += apart * x[i];
    // Whatever is certain is right; two equal vectors never are.
    const int l2 = count_certain<KeyKind::l2>(q, x, kCols);
    const int cosine = count_certain<KeyKind::cosine>(q, x, kCols);
    if (apart == 0) {
      EXPECT_EQ(l2 + cosine, 0);
    }
    count_certain<KeyKind::squared_l2>(q, x, kCols);
  }
}

TEST(CertainKey, RoundingsInTheMiddleAreNot) {
  // 1 + 2^-24 lies between two floats: its root and itself round either way.
  EXPECT_FALSE(certain_key<KeyKind::squared_l2>(0, 1 + 0x1p-24, 0, certain_error(16)).certain);
  EXPECT_FALSE(certain_key<KeyKind::l2>(0, (1 + 0x1p-24) * (1 + 0x1p-24), 0, certain_error(16)).certain);
  EXPECT_FALSE(certain_key<KeyKind::l2>(0, NAN, 0, certain_error(16)).certain);
  EXPECT_TRUE(certain_key<KeyKind::l2>(0, 0, 0, 0).certain);
  EXPECT_EQ(certain_key<KeyKind::cosine>(0, 0, 1, certain_error(16)).key, 1.0f);
}

TEST(CudaInspectModel, NormsAreCanonical) {
  for (const int64_t cols : {1, 15, 16, 17, 129}) {
    const auto values = random_values<float>(static_cast<size_t>(cols), 7);
    const InspectedRow facts = inspect_row(values.data(), cols);
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
