// Plans for a GPU, made and tested where there is none.
#include "exact/knn_plan.hpp"
#include "exact/knn_workspace_cuda.hpp"

#include <kith/error.hpp>
#include <kith/resources.hpp>

#include <gtest/gtest.h>

#include <string>

namespace kith {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

DeviceInfo h200() {
  DeviceInfo info;
  info.device = Device::cuda(0);
  info.name = "NVIDIA H200";
  info.memory_total = 139 * kGiB;
  info.memory_free = 138 * kGiB;
  info.multiprocessors = 132;
  info.compute_capability = 90;
  return info;
}

KnnProblem million() {
  KnnProblem problem;
  problem.queries = 10000;
  problem.rows = 1000000;
  problem.cols = 128;
  problem.k = problem.result_k = 10;
  return problem;
}

KnnPlan plan_within(const KnnProblem& problem, int64_t device_bytes, int64_t host_bytes = kNoLimit) {
  return plan_knn_cuda(problem, h200(), {host_bytes, device_bytes, 2});
}

// What every plan must hold, whatever the budget.
void expect_sound(const KnnProblem& problem, const KnnPlan& plan) {
  EXPECT_EQ(plan.device, Device::cuda(0));
  EXPECT_GE(plan.query_batch, 1);
  EXPECT_LE(plan.query_batch, std::max<int64_t>(problem.queries, 1));
  EXPECT_GE(plan.query_tile, 1);
  EXPECT_LE(plan.query_tile, plan.query_batch);
  EXPECT_LE(plan.query_tile, 65535 * 16);  // what a grid can be tall
  EXPECT_GE(plan.row_tile, 1);
  EXPECT_LE(plan.row_tile, std::max<int64_t>(problem.rows, 1));
  EXPECT_GE(plan.base_chunk, 1);
  EXPECT_EQ(plan.device_bytes, KnnWorkspace(problem, plan).bytes);
}

TEST(CudaPlan, AllQueriesOfAMillionRowsAreOneBatchOnAnH200) {
  const KnnPlan plan = plan_within(million(), 138 * kGiB);
  expect_sound(million(), plan);
  EXPECT_EQ(plan.query_batch, 10000);
  EXPECT_EQ(plan.query_tile, 1024);
  EXPECT_EQ(plan.row_tile, 16384);
  EXPECT_EQ(plan.base_chunk, 1000000);
  EXPECT_LT(plan.device_bytes, kGiB);
  EXPECT_EQ(plan.host_bytes, 10000 * 10 * 8);
}

TEST(CudaPlan, FitsEveryBudgetDownToTheSmallest) {
  for (const Metric metric : {Metric::l2, Metric::cosine}) {
    for (const int64_t k : {int64_t{1}, int64_t{10}, int64_t{1000}, int64_t{1000000}}) {
      KnnProblem problem = million();
      problem.metric = metric;
      problem.k = problem.result_k = k;
      int64_t smallest = 0;
      try {
        plan_within(problem, 0);
        FAIL() << "a plan for no memory";
      } catch (const OutOfMemory& error) {
        smallest = error.bytes_needed();
      }
      EXPECT_GT(smallest, k * 8);
      for (int64_t budget = 138 * kGiB; budget >= smallest; budget = budget * 2 / 3) {
        const KnnPlan plan = plan_within(problem, budget);
        expect_sound(problem, plan);
        EXPECT_LE(plan.device_bytes, budget);
      }
      EXPECT_EQ(plan_within(problem, smallest).device_bytes, smallest);
      EXPECT_THROW(plan_within(problem, smallest - 1), OutOfMemory);
    }
  }
}

TEST(CudaPlan, OutOfMemorySaysWhatIsNeededAndLeft) {
  try {
    plan_within(million(), 1000);
    FAIL();
  } catch (const OutOfMemory& error) {
    EXPECT_NE(std::string(error.what()).find("device memory"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("1000 B"), std::string::npos) << error.what();
  }
}

TEST(CudaPlan, APreparedBaseNeedsNoRoomForRows) {
  KnnProblem problem = million();
  const int64_t staged = plan_within(problem, 138 * kGiB).device_bytes;
  problem.base_prepared = true;
  const KnnPlan plan = plan_within(problem, 138 * kGiB);
  expect_sound(problem, plan);
  EXPECT_EQ(plan.device_bytes, staged - plan.row_tile * 128 * 4);
}

TEST(CudaPlan, FilesAreReadInChunksWithinTheHostLimit) {
  KnnProblem problem = million();
  problem.queries_in_memory = false;
  problem.base_in_memory = false;
  problem.results_in_memory = false;
  for (const int64_t limit : {int64_t{256} << 20, int64_t{16} << 20, int64_t{1} << 20, int64_t{16} << 10}) {
    const KnnPlan plan = plan_within(problem, 138 * kGiB, limit);
    expect_sound(problem, plan);
    EXPECT_LE(plan.host_bytes, limit);
    EXPECT_GE(plan.host_bytes, plan.base_chunk * 128 * 4 + plan.query_batch * (128 * 4 + 10 * 20));
  }
  EXPECT_THROW(plan_within(problem, 138 * kGiB, 100), OutOfMemory);
}

TEST(CudaPlan, ExtremeShapes) {
  for (const int64_t queries : {int64_t{0}, int64_t{1}, int64_t{100000000}}) {
    for (const int64_t rows : {int64_t{0}, int64_t{1}, int64_t{33}, int64_t{2147483647}}) {
      for (const int64_t cols : {int64_t{1}, int64_t{1000000}}) {
        KnnProblem problem;
        problem.queries = queries;
        problem.rows = rows;
        problem.cols = cols;
        problem.k = problem.result_k = 100;
        problem.query_dtype = DType::u8;
        SCOPED_TRACE(testing::Message() << queries << " x " << rows << " x " << cols);
        const KnnPlan plan = plan_within(problem, 138 * kGiB);
        expect_sound(problem, plan);
        EXPECT_LE(plan.device_bytes, 138 * kGiB);
      }
    }
  }
}

TEST(CudaPlan, TheWorkspacePartsDoNotOverlap) {
  KnnProblem problem = million();
  problem.metric = Metric::cosine;
  problem.base_dtype = DType::u8;
  const KnnPlan plan = plan_within(problem, 138 * kGiB);
  const KnnWorkspace layout(problem, plan);
  EXPECT_EQ(layout.queries, 0);
  EXPECT_GE(layout.query_norms, plan.query_batch * 128 * 4);
  EXPECT_GE(layout.lists, layout.query_norms + plan.query_batch * 8);
  EXPECT_GE(layout.bounds, layout.lists + plan.query_batch * 10 * 8);
  EXPECT_GE(layout.rows, layout.bounds + plan.query_batch * 4);
  EXPECT_GE(layout.row_norms, layout.rows + plan.row_tile * 128);
  EXPECT_GE(layout.keys, layout.row_norms + plan.row_tile * 8);
  EXPECT_GE(layout.status, layout.keys + plan.query_tile * plan.row_tile * 4);
  EXPECT_GE(layout.bytes, layout.status + 4);
  for (const int64_t offset : {layout.query_norms, layout.lists, layout.bounds, layout.rows, layout.row_norms,
                               layout.keys, layout.status}) {
    EXPECT_EQ(offset % 256, 0);
  }
}

}  // namespace
}  // namespace kith
