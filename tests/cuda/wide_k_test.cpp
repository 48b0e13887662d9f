// Products for many neighbours, whose lists fill much of a block's shared memory, against the CPU, bit for bit: around
// powers of two, up to k rows, pieces whose lists are merged, hard data, and what is left to the direct engine.
#include "cuda/parity.hpp"
#include "cuda/products.hpp"
#include "graph/same_graph.hpp"

#include <kith/index.hpp>
#include <kith/knn_graph.hpp>

#include <cstdint>
#include <functional>
#include <future>
#include <string>
#include <utility>
#include <vector>

namespace kith {
namespace {

class CudaWideKSmall : public OnCuda {};
class CudaWideK : public OnCuda {};

// By the device's own products alone: how those multiply does not depend on k, and racecheck takes long.
void expect_planned_parity(const Vectors& queries, const Vectors& base, const KnnParams& params,
                           const ProductsRun& run = {}) {
  SCOPED_TRACE(::testing::Message() << base.shape.rows << " rows, k " << params.k);
  expect_same_bytes(knn(queries.view(), base.view(), params, on_cpu()),
                    search_as({CudaEngine::product}, queries, base, params, run));
}

TEST_F(CudaWideKSmall, AroundAPowerOfTwo) {
  for (const int64_t k : {1023, 1024, 1025, 1026}) {
    expect_planned_parity(random_vectors(DType::f32, 3, 6, 1), random_vectors(DType::f32, 52000, 6, 2), {.k = k});
  }
}

TEST_F(CudaWideKSmall, BytesWithAnOddRoom) {
  const Vectors base = random_vectors(DType::u8, 53001, 16, 3);
  expect_planned_parity(random_vectors(DType::u8, 2, 16, 4), base, {.k = 1101, .metric = Metric::inner_product});
  expect_planned_parity(random_vectors(DType::f32, 2, 16, 4), base, {.k = 1101, .metric = Metric::cosine});
}

TEST_F(CudaWideKSmall, AlmostAllRows) {
  for (const int64_t rows : {3000, 3001, 3100}) {
    expect_planned_parity(random_vectors(DType::f32, 2, 5, 5), random_vectors(DType::f32, rows, 5, 6), {.k = 3000});
  }
}

TEST_F(CudaWideKSmall, MergedListsOfPieces) {
  // Each piece has fewer groups than neighbours, the last fewer rows.
  expect_planned_parity(random_vectors(DType::f32, 2, 4, 7), random_vectors(DType::f32, 15000, 4, 8), {.k = 7001},
                        {.base_chunk = 9000});
}

TEST_F(CudaWideKSmall, LargeBesideTheRows) {
  for (const DType dtype : {DType::f32, DType::u8}) {
    expect_planned_parity(random_vectors(dtype, 3, 6, 20), random_vectors(dtype, 13001, 6, 21), {.k = 600});
  }
}

TEST_F(CudaWideKSmall, FarMeanDuplicatesAndEqualRows) {
  constexpr int64_t kRows = 53000;
  const Vectors noise = random_vectors(DType::f32, kRows, 3, 9);
  const auto at = [&](int64_t i, int64_t j) { return noise.floats[static_cast<size_t>(i * 3 + j)]; };
  const std::pair<const char*, Fill> cases[] = {
      {"mean far larger than spread", [&](int64_t i, int64_t j) { return 1e4f + at(i, j); }},
      {"pairs of duplicates", [&](int64_t i, int64_t j) { return at(i / 2, j); }},
      {"1,300 rows equal", [&](int64_t i, int64_t j) { return i % 40 == 0 ? 0.25f : at(i, j); }},
      {"all rows equal", [&](int64_t, int64_t j) { return at(0, j); }},
  };
  for (const auto& [name, fill] : cases) {
    SCOPED_TRACE(name);
    const auto value = [&, &of = fill](int64_t i, int64_t j) { return of(i * 997, j); };
    expect_planned_parity(make_vectors(3, 3, value), make_vectors(kRows, 3, fill), {.k = 1050});
  }
}

TEST_F(CudaWideK, AnyKByProductsAlone) {
  for (const DType dtype : {DType::f32, DType::u8}) {
    const Vectors queries = random_vectors(dtype, 150, 32, 10);
    const Vectors base = random_vectors(dtype, 420000, 32, 11);
    for (const int64_t k : {1024, 1025, 2047, 2048, 2049, 3000, 4096, 8192}) {
      SCOPED_TRACE(::testing::Message() << name_of(dtype) << ", k " << k);
      EXPECT_EQ(said(queries, base, {.k = k, .metric = Metric::sqeuclidean}), "");
    }
  }
}

TEST_F(CudaWideK, EveryMetricOnBothImplementations) {
  for (const Metric metric : kAllMetrics) {
    for (const DType dtype : {DType::f32, DType::u8}) {
      expect_products_parity(random_vectors(dtype, 9, 24, 12), random_vectors(dtype, 110000, 24, 13),
                             {.k = 2049, .metric = metric});
    }
  }
}

TEST_F(CudaWideK, HardData) {
  for_each_hard_data(60000, 12, 14, [](const Vectors& queries, const Vectors& base) {
    for (const Metric metric : {Metric::l2, Metric::cosine}) {
      expect_products_parity(queries, base, {.k = 1200, .metric = metric});
    }
  });
}

TEST_F(CudaWideK, WhatFailsIsTriedAgainThenSearchedDirectly) {
  const Vectors noise = random_vectors(DType::f32, 120000, 16, 15);
  const Vectors queries = make_vectors(5, 16, [](int64_t, int64_t) { return 0.25f; });
  const auto repeated = [&](int64_t every) {
    return make_vectors(120000, 16, [&](int64_t i, int64_t j) {
      return i % every == 0 ? 0.25f : noise.floats[static_cast<size_t>(i * 16 + j)];
    });
  };
  // 8,000 rows are as near as the nearest: more than the 4,128 that fit at first, fewer than a second try takes.
  const std::string again = said(queries, repeated(15), {.k = 2000});
  EXPECT_NE(again.find("5 of 5 queries"), std::string::npos) << again;
  EXPECT_NE(again.find(" 0 were searched directly"), std::string::npos) << again;
  EXPECT_NE(said(queries, repeated(1), {.k = 2000}).find(" 5 were searched directly"), std::string::npos);
}

TEST_F(CudaWideK, PiecesAndBudgetsGiveTheSameBytes) {
  const Vectors queries = random_vectors(DType::f32, 600, 20, 16);
  const Vectors base = random_vectors(DType::f32, 400000, 20, 17);
  const KnnParams params{.k = 1500, .metric = Metric::l2};
  const Neighbors expected = knn(queries.view(), base.view(), params, on_cpu());
  for (const int64_t budget : {int64_t{160} << 20, int64_t{400} << 20, int64_t{4} << 30}) {
    expect_same_bytes(expected, search_as({CudaEngine::product}, queries, base, params, {.device_bytes = budget}));
  }
  expect_same_bytes(expected, search_as({CudaEngine::product}, queries, base, params, {.base_chunk = 110000}));
}

// Short lists and long ones are sorted and merged by the same kernels, with very different shared memory.
TEST_F(CudaWideK, SearchesAtOnceWithFewAndManyNeighbors) {
  const Vectors queries = random_vectors(DType::f32, 12, 8, 21);
  const Vectors base = random_vectors(DType::f32, 800000, 8, 22);
  const auto search_often = [&](int64_t k, const Neighbors& expected) {
    for (int round = 0; round < 15; ++round) {
      expect_same_bytes(expected, search_as({CudaEngine::product}, queries, base, {.k = k}, {.base_chunk = 400000}));
      if (::testing::Test::HasFailure()) return;
    }
  };
  const Neighbors few = knn(queries.view(), base.view(), {.k = 10}, on_cpu());
  const Neighbors many = knn(queries.view(), base.view(), {.k = 8192}, on_cpu());
  std::vector<std::future<void>> searches;
  for (int i = 0; i < 2; ++i) {
    searches.push_back(std::async(std::launch::async, search_often, 10, std::cref(few)));
    searches.push_back(std::async(std::launch::async, search_often, 8192, std::cref(many)));
  }
  for (std::future<void>& search : searches) EXPECT_NO_THROW(search.get());
}

TEST_F(CudaWideK, AnIndexOfTwoBlocksIsTheSame) {
  const Vectors queries = random_vectors(DType::f32, 30, 16, 18);
  const Vectors base = random_vectors(DType::f32, 200000, 16, 19);
  Index index("Flat", {.metric = Metric::inner_product});
  index.add(base.view().slice(0, 80000), Ownership::borrow, on_cuda());
  index.add(base.view().slice(80000, 120000), Ownership::borrow, on_cuda());
  expect_same_bytes(knn(queries.view(), base.view(), {.k = 1600, .metric = Metric::inner_product}, on_cpu()),
                    index.search(queries.view(), {.k = 1600}, on_cuda()));
}

TEST_F(CudaWideK, AGraph) {
  const Vectors x = random_vectors(DType::f32, 49500, 8, 20);
  const KnnGraphParams params{.k = 1025};
  expect_same_bytes(knn_graph(x.view(), params, on_cpu()), knn_graph(x.view(), params, on_cuda()));
}

}  // namespace
}  // namespace kith
