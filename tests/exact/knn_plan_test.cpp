#include "exact/knn_plan_cpu.hpp"

#include <kith/error.hpp>
#include <kith/resources.hpp>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace kith {
namespace {

SearchTask problem(int64_t queries, int64_t rows, int64_t cols, int64_t k) {
  SearchTask p;
  p.shape.queries = queries;
  p.shape.rows = p.rows = rows;
  p.shape.cols = cols;
  p.k = p.request.k = k;
  return p;
}

RC_GTEST_PROP(KnnPlan, StaysWithinItsBudgetOrSaysWhatItNeeds, ()) {
  SearchTask p = problem(*rc::gen::inRange<int64_t>(1, 100000), *rc::gen::inRange<int64_t>(1, 10000000),
                         *rc::gen::inRange<int64_t>(1, 5000), *rc::gen::inRange<int64_t>(1, 3000));
  p.k = std::min(p.k, p.rows);
  p.prepared = *rc::gen::arbitrary<bool>();
  p.shape.base_dtype = *rc::gen::element(DType::f32, DType::u8);
  p.shape.query_dtype = *rc::gen::element(DType::f32, DType::u8);
  p.shape.base_in_memory = *rc::gen::arbitrary<bool>();
  p.shape.queries_in_memory = *rc::gen::arbitrary<bool>();
  p.request.results_in_memory = *rc::gen::arbitrary<bool>();
  const int threads = *rc::gen::inRange(1, 65);
  const int64_t budget = int64_t{1} << *rc::gen::inRange(14, 40);
  const CpuExtensions cpu =
      *rc::gen::element(CpuExtensions{}, CpuExtensions{true, false, false}, CpuExtensions{false, true, true});
  const KnnCpuPlan plan = plan_knn_cpu(p, {budget, 0, threads, cpu});
  RC_ASSERT(plan.query_batch >= 1 && plan.query_batch <= p.shape.queries);
  RC_ASSERT(plan.base_chunk >= 1 && plan.base_chunk <= p.rows);
  RC_ASSERT(plan.panel_rows >= 1 && plan.panel_rows <= plan.base_chunk);
  RC_ASSERT(plan.row_splits >= 1);
  if (plan.host_bytes <= budget) return;
  RC_ASSERT(plan_knn_cpu(p, {plan.host_bytes, 0, threads, cpu}).host_bytes <= plan.host_bytes);
}

TEST(KnnPlan, WhatItSaysItNeedsIsTheLeast) {
  const SearchTask p = problem(20, 1000000, 128, 5000);
  const int64_t needed = plan_knn_cpu(p, {1000, 0, 16}).host_bytes;
  EXPECT_GT(needed, 1000);
  const KnnCpuPlan plan = plan_knn_cpu(p, {needed, 0, 16});
  EXPECT_EQ(plan.row_splits, 1);
  EXPECT_EQ(plan.host_bytes, needed);
  EXPECT_EQ(plan_knn_cpu(p, {needed - 1, 0, 16}).host_bytes, needed);
}

TEST(KnnPlan, WideVectorsAreScannedDirectlyWhereTheirPanelsDoNotFit) {
  const KnnCpuPlan plan = plan_knn_cpu(problem(20, 1000, 100000, 10), {int64_t{100} << 20, 0, 16});
  EXPECT_EQ(plan.engine, CpuEngine::direct);
}

TEST(KnnPlan, FewQueriesAreScannedDirectlyByAllThreads) {
  const KnnCpuPlan plan = plan_knn_cpu(problem(1, 1000000, 128, 10), {kNoLimit, 0, 8});
  EXPECT_EQ(plan.engine, CpuEngine::direct);
  EXPECT_GE(plan.row_splits, 8);
}

TEST(KnnPlan, FloatsArePackedForOneSearchWhereThatPays) {
  const auto engine = [](int64_t queries, int64_t cols, bool prepared) {
    SearchTask task = problem(queries, 100000, cols, 10);
    task.prepared = prepared;
    return cpu_engine(task, {});
  };
  for (const int64_t cols : {1, 3, 8, 16, 32, 33, 128, 784, 40000}) {
    SCOPED_TRACE(cols);
    EXPECT_EQ(engine(5, cols, false), CpuEngine::direct);
    EXPECT_EQ(engine(6, cols, true), CpuEngine::panels);
    EXPECT_EQ(engine(500, cols, false), CpuEngine::panels);
    bool packed = false;  // once for so many queries, then for more
    for (int64_t queries = 1; queries < 500; ++queries) {
      const bool panels = engine(queries, cols, false) == CpuEngine::panels;
      EXPECT_GE(panels, packed) << queries;
      packed = panels;
    }
  }
  EXPECT_EQ(engine(10, 128, false), CpuEngine::direct);
  EXPECT_EQ(engine(40, 128, false), CpuEngine::panels);
  EXPECT_EQ(engine(30, 3, false), CpuEngine::direct);
}

TEST(KnnPlan, KeysOfWholeBlocksAreGivenUpFirstWhereMemoryIsShort) {
  const SearchTask task = problem(1000, 100000, 128, 10);
  const KnnCpuPlan all = plan_knn_cpu(task, {kNoLimit, 0, 2});
  EXPECT_TRUE(all.dense);
  const KnnCpuPlan less = plan_knn_cpu(task, {all.host_bytes - 1, 0, 2});
  EXPECT_FALSE(less.dense);
  EXPECT_EQ(less.query_batch, all.query_batch);
  EXPECT_EQ(less.panel_rows, all.panel_rows);
  EXPECT_FALSE(plan_knn_cpu(problem(1, 100000, 128, 10), {kNoLimit, 0, 2}).dense);
}

TEST(KnnPlan, ManyQueriesAreMultiplied) {
  const KnnCpuPlan plan = plan_knn_cpu(problem(1000, 100000, 128, 10), {kNoLimit, 0, 2});
  EXPECT_EQ(plan.engine, CpuEngine::panels);
  EXPECT_EQ(plan.query_batch, 1000);
}

TEST(KnnPlan, BytesArePackedAsBytesWhereTheCpuMultipliesThem) {
  SearchTask p = problem(1000, 100000, 128, 10);
  p.shape.query_dtype = p.shape.base_dtype = DType::u8;
  const KnnCpuPlan floats = plan_knn_cpu(p, {kNoLimit, 0, 2, {}});
  EXPECT_EQ(floats.format, PanelFormat::f32);
  const KnnCpuPlan bytes = plan_knn_cpu(p, {kNoLimit, 0, 2, {false, true, true}});
  EXPECT_EQ(bytes.format, PanelFormat::u8);
  EXPECT_EQ(bytes.panel_rows, 100000);
  EXPECT_EQ(bytes.query_block % kMostQueriesPerPanel, 0);
  p.shape.query_dtype = DType::f32;
  EXPECT_EQ(plan_knn_cpu(p, {kNoLimit, 0, 2, {false, true, true}}).format, PanelFormat::bf16);
}

TEST(KnnPlan, FloatsAreScreenedForManyQueriesOrWhereThatIsPrepared) {
  const PlanBudget bytes{kNoLimit, 0, 2, {true, false, false}};
  EXPECT_EQ(plan_knn_cpu(problem(1000, 100000, 128, 10), bytes).format, PanelFormat::screened);
  EXPECT_EQ(plan_knn_cpu(problem(10, 100000, 128, 10), bytes).format, PanelFormat::f32);
  EXPECT_EQ(plan_knn_cpu(problem(100, 100000, 32, 10), bytes).format, PanelFormat::f32);
  EXPECT_EQ(plan_knn_cpu(problem(1000, 1000, 128, 10), bytes).format, PanelFormat::f32);
  EXPECT_EQ(plan_knn_cpu(problem(1, 100000, 128, 10), bytes).engine, CpuEngine::direct);
  SearchTask prepared = problem(1, 100000, 128, 10);
  prepared.prepared = true;
  const KnnCpuPlan one = plan_knn_cpu(prepared, bytes);
  EXPECT_EQ(one.engine, CpuEngine::direct);
  EXPECT_TRUE(one.screens);
  EXPECT_FALSE(plan_knn_cpu(prepared, {kNoLimit, 0, 2, {}}).screens);
  EXPECT_EQ(plan_knn_cpu(prepared, {kNoLimit, 0, 2, {}}).engine, CpuEngine::direct);
  prepared.shape.queries = 4;
  EXPECT_EQ(plan_knn_cpu(prepared, {kNoLimit, 0, 2, {}}).engine, CpuEngine::panels);
}

// A screen's queries are found by their panels: eight in one, or AVX2's six.
TEST(KnnPlan, BlocksOfQueriesBeginWithAPanelOfTheScreen) {
  CpuExtensions avx2;
  avx2.avx2 = true;
  CpuExtensions dotprod;
  dotprod.dotprod = true;
  for (const int64_t cols : {32, 100, 128, 768, 4096, 20000}) {
    const SearchTask task = problem(10000, 100000, cols, 10);
    const KnnCpuPlan sixes = plan_knn_cpu(task, {kNoLimit, 0, 2, avx2});
    EXPECT_EQ(sixes.query_block % 6, 0) << cols << " columns, " << sixes.query_block;
    const KnnCpuPlan eights = plan_knn_cpu(task, {kNoLimit, 0, 2, dotprod});
    EXPECT_EQ(eights.query_block % 8, 0) << cols << " columns, " << eights.query_block;
  }
}

// An index keeps a screen and no tiles: these are made where they save more than that.
TEST(KnnPlan, AnIndexHasAScreenWhereTilesMultiply) {
  const PlanBudget tiles{kNoLimit, 0, 2, {false, true, true}};
  SearchTask prepared = problem(1, 100000, 128, 10);
  EXPECT_FALSE(plan_knn_cpu(prepared, tiles).screens);
  prepared.prepared = true;
  const KnnCpuPlan one = plan_knn_cpu(prepared, tiles);
  EXPECT_EQ(one.engine, CpuEngine::direct);
  EXPECT_TRUE(one.screens);
  EXPECT_EQ(one.packed_queries(), PanelFormat::rounded);
  prepared.shape.queries = 30;
  EXPECT_EQ(plan_knn_cpu(prepared, tiles).packed_queries(), PanelFormat::screened);
  // Tiles are made for the search, within its memory, where a screen would let much through.
  prepared = problem(1000, 100000, 128, 3000);
  prepared.prepared = true;
  const KnnCpuPlan made = plan_knn_cpu(prepared, tiles);
  EXPECT_EQ(made.packed_queries(), PanelFormat::bf16);
  EXPECT_GE(made.host_bytes, made.panel_rows * packed_bytes(PanelFormat::bf16, 128));
  SearchTask short_rows = problem(1, 100000, 16, 10);
  short_rows.prepared = true;
  EXPECT_FALSE(plan_knn_cpu(short_rows, tiles).screens);
}

// A screen lets every panel through that holds an answer.
TEST(KnnPlan, FloatsAreNotScreenedWhereMostPanelsHoldAnswers) {
  const PlanBudget bytes{kNoLimit, 0, 2, {true, false, false}};
  EXPECT_EQ(plan_knn_cpu(problem(1000, 3600, 128, 100), bytes).format, PanelFormat::screened);
  EXPECT_EQ(plan_knn_cpu(problem(1000, 3600, 128, 101), bytes).format, PanelFormat::f32);
  SearchTask within = problem(1000, 3600, 128, 101);
  within.request.what = Wanted::within;
  EXPECT_EQ(plan_knn_cpu(within, bytes).format, PanelFormat::screened);
}

TEST(KnnPlan, RowsOfBytesThatAreMultipliedAsTheyLieArePackedForManyQueriesOnly) {
  SearchTask p = problem(40, 100000, 128, 10);
  p.shape.metric = Metric::cosine;
  p.shape.query_dtype = p.shape.base_dtype = DType::u8;
  const PlanBudget multiplies{kNoLimit, 0, 2, {true, false, false}};
  EXPECT_EQ(plan_knn_cpu(p, {kNoLimit, 0, 2, {}}).engine, CpuEngine::panels);
  EXPECT_EQ(plan_knn_cpu(p, multiplies).engine, CpuEngine::direct);
  p.shape.queries = 1000;
  EXPECT_EQ(plan_knn_cpu(p, multiplies).engine, CpuEngine::panels);
  p.shape.queries = 40;
  p.shape.cols = 5000;
  EXPECT_EQ(plan_knn_cpu(p, multiplies).engine, CpuEngine::panels);
  p.shape.cols = 128;
  p.shape.query_dtype = DType::f32;
  EXPECT_EQ(plan_knn_cpu(p, multiplies).engine, CpuEngine::panels);
}

TEST(KnnPlan, BitsOfLongRowsAreCountedAsTheyLieForMoreQueries) {
  const auto engine = [](int64_t queries, int64_t cols, bool prepared) {
    SearchTask p = problem(queries, 10000, cols, 10);
    p.shape.metric = Metric::hamming;
    p.shape.query_dtype = p.shape.base_dtype = DType::u8;
    p.prepared = prepared;
    return plan_knn_cpu(p, {kNoLimit, 0, 2, {true, false, false}}).engine;
  };
  EXPECT_EQ(engine(6, 63, false), CpuEngine::panels);
  EXPECT_EQ(engine(11, 64, false), CpuEngine::direct);
  EXPECT_EQ(engine(12, 64, false), CpuEngine::panels);
  EXPECT_EQ(engine(1, 64, true), CpuEngine::panels);
}

TEST(KnnPlan, AutomaticMeansTheGpuOnlyWhereThatPays) {
  DeviceInfo h200;
  h200.device = Device::cuda(0);
  h200.memory_total = h200.memory_free = int64_t{139} << 30;
  EXPECT_EQ(faster_device(work_of(problem(10000, 1000000, 128, 10).shape), 16, {}), Device::cpu());
  EXPECT_EQ(faster_device(work_of(problem(1, 1000, 128, 10).shape), 16, {h200}), Device::cpu());
  EXPECT_EQ(faster_device(work_of(problem(10000, 1000000, 128, 10).shape), 16, {h200}), Device::cuda(0));
}

}  // namespace
}  // namespace kith
