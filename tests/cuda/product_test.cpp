// The product engine against the CPU, bit for bit: both implementations, whole groups and a second product, every
// metric and dtype, shapes around its tiles, and data on which it must leave queries to the direct engine.
#include "cuda/parity.hpp"
#include "cuda/products.hpp"

#include <cmath>
#include <cstdint>
#include <string>

namespace kith {
namespace {

class CudaProductSmall : public OnCuda {};
class CudaProduct : public OnCuda {};

TEST_F(CudaProductSmall, RowsAroundTilesAndGroups) {
  for (const int64_t rows : {1, 31, 33, 127, 128, 129, 255, 257, 700}) {
    expect_products_parity(random_vectors(DType::f32, 3, 20, 1), random_vectors(DType::f32, rows, 20, 2), {.k = 1});
    expect_products_parity(random_vectors(DType::u8, 3, 20, 1), random_vectors(DType::u8, rows, 20, 2), {.k = 1});
  }
}

TEST_F(CudaProductSmall, QueriesAroundTiles) {
  const Vectors base = random_vectors(DType::f32, 1500, 40, 3);
  for (const int64_t queries : {1, 127, 129, 257}) {
    expect_products_parity(random_vectors(DType::f32, queries, 40, 4), base, {.k = 4});
  }
}

TEST_F(CudaProductSmall, EveryMetricAndPairOfDtypes) {
  for (const DType query_dtype : {DType::f32, DType::u8}) {
    for (const DType base_dtype : {DType::f32, DType::u8}) {
      for (const Metric metric : kAllMetrics) {
        expect_products_parity(random_vectors(query_dtype, 5, 36, 5), random_vectors(base_dtype, 1200, 36, 6),
                               {.k = 6, .metric = metric});
      }
    }
  }
}

TEST_F(CudaProductSmall, ColumnsAroundChunks) {
  for (const int64_t cols : {1, 3, 63, 64, 65, 127, 129, 400}) {
    expect_products_parity(random_vectors(DType::f32, 5, cols, 7), random_vectors(DType::f32, 900, cols, 8), {.k = 3});
    expect_products_parity(random_vectors(DType::u8, 5, cols, 7, 3), random_vectors(DType::u8, 900, cols, 8, 1),
                           {.k = 3, .metric = Metric::inner_product});
  }
}

TEST_F(CudaProduct, ManyColumns) {
  for (const int64_t cols : {192, 256, 784, 1025}) {
    for (const Metric metric : kAllMetrics) {
      expect_products_parity(random_vectors(DType::f32, 300, cols, 9), random_vectors(DType::f32, 5000, cols, 10),
                             {.k = 10, .metric = metric});
      expect_products_parity(random_vectors(DType::u8, 300, cols, 9), random_vectors(DType::u8, 5000, cols, 10),
                             {.k = 10, .metric = metric});
    }
  }
}

TEST_F(CudaProduct, AnyK) {
  const Vectors queries = random_vectors(DType::f32, 40, 16, 11);
  const Vectors base = random_vectors(DType::f32, 70000, 16, 12);
  for (const int64_t k : {1, 2, 31, 32, 33, 100, 500, 1000, 1024}) {
    expect_products_parity(queries, base, {.k = k, .metric = Metric::sqeuclidean});
  }
}

TEST_F(CudaProduct, HardData) {
  for_each_hard_data(20000, 24, 13, [](const Vectors& queries, const Vectors& base) {
    for (const Metric metric : kAllMetrics) expect_products_parity(queries, base, {.k = 20, .metric = metric});
  });
}

TEST_F(CudaProduct, OrdinaryDataIsSearchedByProductsAlone) {
  for (const DType dtype : {DType::f32, DType::u8}) {
    for (const Metric metric : kAllMetrics) {
      for (const int64_t k : {1, 10, 100}) {
        EXPECT_EQ(said(random_vectors(dtype, 300, 64, 22), random_vectors(dtype, 60000, 64, 23), {k, metric}), "")
            << name_of(dtype) << " " << name_of(metric) << " " << k;
      }
    }
  }
}

TEST_F(CudaProduct, ManyEqualRowsTakeASecondTryAndAllEqualOnesTheDirectEngine) {
  const Vectors noise = random_vectors(DType::f32, 60000, 16, 24);
  const Vectors queries = make_vectors(5, 16, [](int64_t, int64_t) { return 0.25f; });
  const auto repeated = [&](int64_t every) {
    return make_vectors(60000, 16, [&](int64_t i, int64_t j) {
      return i % every == 0 ? 0.25f : noise.floats[static_cast<size_t>(i * 16 + j)];
    });
  };
  EXPECT_NE(said(queries, repeated(50), {.k = 10}).find("5 of 5 queries"), std::string::npos);
  EXPECT_NE(said(queries, repeated(50), {.k = 10}).find(" 0 were searched directly"), std::string::npos);
  EXPECT_NE(said(queries, repeated(1), {.k = 10}).find(" 5 were searched directly"), std::string::npos);
}

TEST_F(CudaProduct, FewDistinctBytes) {
  Vectors base = random_vectors(DType::u8, 30000, 10, 14);
  for (uint8_t& byte : base.bytes) byte = static_cast<uint8_t>(byte % 3);
  Vectors queries = random_vectors(DType::u8, 50, 10, 15);
  for (uint8_t& byte : queries.bytes) byte = static_cast<uint8_t>(byte % 3);
  for (const Metric metric : kAllMetrics) expect_products_parity(queries, base, {.k = 15, .metric = metric});
}

TEST_F(CudaProduct, NansAndInfinitiesWhereNotRefused) {
  Vectors base = random_vectors(DType::f32, 9000, 17, 16);
  base.row(3)[16] = NAN;
  base.row(70)[0] = INFINITY;
  base.row(8071)[5] = -INFINITY;
  Vectors queries = random_vectors(DType::f32, 9, 17, 17);
  queries.row(1)[2] = NAN;
  queries.row(2)[2] = INFINITY;
  for (const Metric metric : kAllMetrics)
    expect_products_parity(queries, base, {.k = 12, .metric = metric, .check_finite = false});
  const Vectors good = random_vectors(DType::f32, 9000, 17, 16);
  for (const Metric metric : kAllMetrics)
    expect_products_parity(queries, good, {.k = 12, .metric = metric, .check_finite = false});
}

TEST_F(CudaProduct, EveryBudgetGivesTheSameBytes) {
  const Vectors queries = random_vectors(DType::f32, 700, 32, 18);
  const Vectors base = random_vectors(DType::f32, 90000, 32, 19);
  for (const Metric metric : {Metric::l2, Metric::cosine}) {
    const KnnParams params{.k = 25, .metric = metric};
    const Neighbors expected = knn(queries.view(), base.view(), params, on_cpu());
    for (const int64_t budget : {int64_t{24} << 20, int64_t{48} << 20, int64_t{128} << 20}) {
      expect_same_bytes(expected, search_as({CudaEngine::product}, queries, base, params, {.device_bytes = budget}));
    }
  }
}

TEST_F(CudaProduct, ScaledQueriesOfAnInnerProduct) {
  const Vectors base = random_vectors(DType::f32, 20000, 48, 20);
  Vectors queries = random_vectors(DType::f32, 60, 48, 21);
  for (int64_t i = 0; i < 60; ++i) {
    for (int64_t j = 0; j < 48; ++j) queries.row(i)[j] *= std::ldexp(1.0f, static_cast<int>(i % 20) * 4 - 40);
  }
  expect_products_parity(queries, base, {.k = 10, .metric = Metric::inner_product});
  expect_products_parity(queries, base, {.k = 10, .metric = Metric::cosine});
  expect_products_parity(queries, base, {.k = 10, .metric = Metric::l2});
}

}  // namespace
}  // namespace kith
