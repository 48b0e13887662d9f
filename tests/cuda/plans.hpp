// Plans of an exact search on an H200, made where there is none.
#pragma once

#include "exact/knn_plan_cuda.hpp"
#include "exact/search_workspace_cuda.hpp"
#include "reference/h200.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <variant>

namespace kith {

using reference::h200;

inline constexpr int64_t kGiB = int64_t{1} << 30;

inline SearchTask million() {
  SearchTask problem;
  problem.shape.queries = 10000;
  problem.shape.rows = problem.rows = 1000000;
  problem.shape.cols = 128;
  problem.k = problem.request.k = 10;
  return problem;
}

inline KnnCudaPlan plan_within(const SearchTask& problem, int64_t device_bytes, int64_t host_bytes = kNoLimit) {
  return plan_knn_cuda(problem, h200(), {host_bytes, device_bytes, 2});
}

inline const SecondProduct& second_of(const KnnCudaPlan& plan) { return std::get<SecondProduct>(plan.product->way); }
inline bool is_coarse(const KnnCudaPlan& plan) {
  return plan.product && std::holds_alternative<CoarseProduct>(plan.product->way);
}
inline const CoarseProduct& coarse_of(const KnnCudaPlan& plan) { return std::get<CoarseProduct>(plan.product->way); }

inline int rows_per_minimum(const KnnCudaPlan& plan) {
  if (const auto* grouped = std::get_if<GroupedProduct>(&plan.product->way)) return grouped->rows_per_minimum;
  if (plan.product->streams()) return 1;
  return is_coarse(plan) ? coarse_of(plan).rows_per_minimum : second_of(plan).rows_per_minimum;
}

// What every plan must hold, whatever the budget.
inline void expect_sound(const SearchTask& problem, const KnnCudaPlan& plan, const DeviceInfo& device = h200()) {
  EXPECT_EQ(plan.device, Device::cuda(0));
  EXPECT_GE(plan.query_batch, 1);
  EXPECT_LE(plan.query_batch, std::max<int64_t>(problem.shape.queries, 1));
  EXPECT_GE(plan.query_tile, 1);
  EXPECT_LE(plan.query_tile, plan.query_batch);
  EXPECT_LE(plan.query_tile, 65535 * 16);  // what a grid can be tall
  EXPECT_GE(plan.row_tile, 1);
  EXPECT_LE(plan.row_tile, std::max<int64_t>(problem.rows, 1));
  EXPECT_GE(plan.base_chunk, 1);
  if (plan.product) {
    const ProductPlan& product = *plan.product;
    EXPECT_GE(product.queries, 1);
    EXPECT_LE(product.queries, plan.query_batch);
    EXPECT_TRUE(product.rows == problem.rows || product.rows % kQueryTile == 0) << product.rows;
    const int64_t minima = part_count(product.rows, rows_per_minimum(plan));
    EXPECT_TRUE(minima <= kKthLongestRow || product.streams());
    int64_t room = 0;
    if (const auto* grouped = std::get_if<GroupedProduct>(&product.way)) {
      EXPECT_GE(grouped->selected.count, std::min(problem.k, minima));
    }
    if (const auto* second = std::get_if<SecondProduct>(&product.way)) {
      if (second->selected) {
        EXPECT_GE(second->selected->count, std::min(problem.k, minima));
      }
      room = second->candidates.room;
      EXPECT_GE(second->candidates.capacity, 2 * problem.k);
      EXPECT_GE(room, problem.k);
      EXPECT_LE(room, second->candidates.capacity);
    }
    if (const auto* coarse = std::get_if<CoarseProduct>(&product.way)) {
      room = coarse->room;
      EXPECT_GE(room, std::min(problem.k, problem.rows));
    }
    EXPECT_GE(product.retry.capacity, 2048);
    EXPECT_GE(product.retry.room, room);
    EXPECT_LE(rerank_bytes(product.retry.room, problem.shape.cols), most_shared_bytes(device.compute_capability));
  }
  EXPECT_EQ(plan.device_bytes, KnnWorkspace(problem, plan).bytes);
}

}  // namespace kith
