// Where an exact search keeps its things in the one block of device memory it takes: the plan counts these bytes and
// the backend lays out by them, so what is used is what was planned.
#pragma once

#include "core/byte_size.hpp"
#include "exact/knn_plan.hpp"

#include <cstdint>

namespace kith {

// Offsets from the start of the block, each aligned; a part that a search does not need has no bytes.
struct KnnWorkspace {
  int64_t queries = 0;      // query_batch x cols, as they came
  int64_t query_norms = 0;  // inverse norms, double
  int64_t lists = 0;        // query_batch x k neighbours, u64
  int64_t bounds = 0;       // query_batch keys, u32
  int64_t rows = 0;         // row_tile x cols, as they came
  int64_t row_norms = 0;    // inverse norms, double
  int64_t keys = 0;         // query_tile x row_tile, u32
  int64_t first_bad = 0;    // one row number, u32
  int64_t bytes = 0;        // INT64_MAX where the sum cannot be counted

  KnnWorkspace(const KnnProblem& problem, const KnnPlan& plan) {
    const int64_t norm_bytes = problem.metric == Metric::cosine ? 8 : 0;
    queries = take(plan.query_batch, saturating_multiply(problem.cols, size_of(problem.query_dtype)));
    query_norms = take(plan.query_batch, norm_bytes);
    lists = take(plan.query_batch, saturating_multiply(problem.k, 8));
    bounds = take(plan.query_batch, 4);
    const int64_t staged_rows = problem.base_prepared ? 0 : plan.row_tile;
    rows = take(staged_rows, saturating_multiply(problem.cols, size_of(problem.base_dtype)));
    row_norms = take(staged_rows, norm_bytes);
    keys = take(plan.query_tile, saturating_multiply(plan.row_tile, 4));
    first_bad = take(1, 4);
  }

 private:
  int64_t take(int64_t count, int64_t bytes_each) {
    constexpr int64_t kAlignment = 256;
    const int64_t start = bytes;
    const int64_t size = saturating_multiply(count, bytes_each);
    bytes =
        size > INT64_MAX - kAlignment - start ? INT64_MAX : (start + size + kAlignment - 1) / kAlignment * kAlignment;
    return start;
  }
};

}  // namespace kith
