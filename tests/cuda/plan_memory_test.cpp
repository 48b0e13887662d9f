// What a plan for a GPU takes there: the parts of its workspace, and what rows, lists and masks need room for.
#include "cuda/plans.hpp"
#include "exact/search_workspace_cuda.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace kith {
namespace {

TEST(CudaPlanMemory, TheWorkspacePartsDoNotOverlap) {
  SearchTask problem = million();
  problem.shape.metric = Metric::cosine;
  problem.shape.base_dtype = DType::u8;
  problem.k = problem.request.k = 100;
  const KnnCudaPlan plan = plan_within(problem, 138 * kGiB);
  const KnnWorkspace layout(problem, plan);
  const int64_t batch = plan.product->queries;
  const int64_t piece = plan.product->rows;
  std::vector<std::pair<int64_t, int64_t>> parts = {
      {layout.queries.offset, plan.query_batch * 128 * 4},
      {layout.query_norms.offset, plan.query_batch * 8},
      {layout.lists.offset, plan.query_batch * 100 * 8},
      {layout.left_bounds.offset, plan.query_tile * 4},
      {layout.rows.offset, piece * 128},
      {layout.row_norms.offset, piece * 8},
      {layout.keys.offset, plan.query_tile * plan.row_tile * 4},
      {layout.status.offset, 28},
      {layout.base_operands.offset, piece * 128 * 2},
      {layout.base_terms.offset, piece * 4},
      {layout.centre.offset, 128 * 4},
      {layout.base_bounds.offset, 16},
      {layout.query_operands.offset, batch * 128 * 2},
      {layout.query_bounds.offset, batch * 32},
      {layout.minima.offset, batch * piece / 64 * 4},
      {layout.kth.offset, batch * 4},
      {layout.selected.offset, batch * 100 * 4},
      {layout.groups.offset, batch * 100 * 4},
      {layout.select_groups.offset, second_of(plan).selected->bytes},
      {layout.thresholds.offset, batch * 4},
      {layout.key_limits.offset, batch * 4},
      {layout.group_counts.offset, batch * 4},
      {layout.row_counts.offset, batch * 4},
      {layout.candidates.offset, batch * second_of(plan).candidates.capacity * 4},
      {layout.found.offset, batch * 100 * 8},
      {layout.failed.offset, batch * 4},
      {layout.failed_rows.offset, plan.query_tile * 128 * 4},
      {layout.failed_norms.offset, plan.query_tile * 8},
      {layout.failed_lists.offset, plan.query_tile * 100 * 8},
  };
  std::sort(parts.begin(), parts.end());
  int64_t end = 0;
  for (const auto& [offset, size] : parts) {
    EXPECT_GE(offset, end);
    EXPECT_EQ(offset % 256, 0);
    end = offset + size;
  }
  EXPECT_GE(layout.bytes, end);
}

TEST(CudaPlanMemory, RowsOnTheDeviceNeedNoRoom) {
  for (const CudaEngine engine : {CudaEngine::direct, CudaEngine::product}) {
    SearchTask problem = million();
    const auto plan_it = [&] { return plan_knn_cuda(problem, h200(), {kNoLimit, 138 * kGiB, 2}, {engine}); };
    const int64_t staged = plan_it().device_bytes;
    problem.shape.base_space = MemorySpace::cuda(0);
    const KnnCudaPlan plan = plan_it();
    expect_sound(problem, plan);
    EXPECT_LE(plan.device_bytes, staged - piece_rows(plan) * 128 * 4);
  }
}

TEST(CudaPlanMemory, ManyPiecesFromTheHostComeAheadToASecondPlace) {
  SearchTask problem = million();
  problem.shape.rows = problem.rows = 5000000;
  const KnnCudaPlan plan = plan_within(problem, 138 * kGiB);
  expect_sound(problem, plan);
  EXPECT_TRUE(rows_come_ahead(problem, plan));
  const KnnWorkspace layout(problem, plan);
  EXPECT_GE(layout.rows_ahead.offset - layout.rows.offset, plan.product->rows * 128 * 4);
  EXPECT_GE(layout.row_norms.offset - layout.rows_ahead.offset, plan.product->rows * 128 * 4);
  EXPECT_FALSE(rows_come_ahead(million(), plan_within(million(), 138 * kGiB)));  // one piece
  problem.shape.base_space = MemorySpace::cuda(0);
  EXPECT_FALSE(rows_come_ahead(problem, plan_within(problem, 138 * kGiB)));
}

TEST(CudaPlanMemory, AListTakesItsNumbersAndAMaskItsBits) {
  SearchTask problem = million();
  problem.prepared = true;
  const KnnCudaPlan plain = plan_within(problem, 138 * kGiB);
  problem.filter = FilterPath::mask;
  const KnnCudaPlan masked = plan_within(problem, 138 * kGiB);
  expect_sound(problem, masked);
  EXPECT_TRUE(masked.product && masked.product->operands_ready);
  EXPECT_GE(masked.device_bytes, plain.device_bytes + 1000000 / 8 + 1000000 * 4);
  problem.filter = FilterPath::list;
  problem.shape.rows = 1500000;
  const KnnCudaPlan listed = plan_within(problem, 138 * kGiB);
  expect_sound(problem, listed);
  EXPECT_FALSE(listed.product && listed.product->operands_ready);
  EXPECT_GE(listed.device_bytes, plain.device_bytes + 1000000 * (4 + 256 + 4) + 1500000 / 8);
  EXPECT_EQ(listed.gather_bytes, 0);  // nothing comes from the host
}

TEST(CudaPlanMemory, RowsByNumberFromTheHostPassThroughSomeMemory) {
  SearchTask problem = million();
  problem.filter = FilterPath::list;
  EXPECT_GT(plan_within(problem, 138 * kGiB).pinned_bytes, 0);
  EXPECT_EQ(plan_within(problem, 138 * kGiB).gather_bytes, 0);
  problem.shape.rows = problem.rows = 1000;
  EXPECT_EQ(plan_within(problem, 138 * kGiB).gather_bytes, 1000 * 128 * 4);
  for (int64_t limit = int64_t{64} << 20; limit > 1000; limit /= 3) {
    const KnnCudaPlan plan = plan_within(problem, 138 * kGiB, limit);
    expect_sound(problem, plan);
    EXPECT_LE(plan.host_bytes, limit);
  }
}

}  // namespace
}  // namespace kith
