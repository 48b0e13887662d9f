// What every exact search checks before it plans.
#pragma once

#include <kith/knn.hpp>

#include "exact/knn_plan.hpp"

namespace kith {

struct RowsInfo {
  int64_t rows = 0;
  int64_t cols = 0;
  DType dtype = DType::f32;
};

// The problem, its k no larger than the base. InvalidArgument or Unsupported where it cannot be.
KnnProblem check_knn(const RowsInfo& queries, const RowsInfo& base, const KnnParams& params);

// That so many results can be counted.
void check_result_size(int64_t queries, int64_t k);

void check_host_readable(std::string_view what, const MatrixView& view);
void check_output(const NeighborsView& out, int64_t queries, int64_t k);

// True, with everything padded, where there is nothing to search.
bool pad_when_empty(const KnnProblem& problem, const NeighborsView& out);

}  // namespace kith
