// What every exact search checks before it plans.
#pragma once

#include <kith/knn.hpp>

#include "exact/knn_plan.hpp"

namespace kith {

struct RowsInfo {
  int64_t rows = 0;
  int64_t cols = 0;
  DType dtype = DType::f32;
  MemorySpace space;

  RowsInfo(int64_t r, int64_t c, DType type) : rows(r), cols(c), dtype(type) {}
  explicit RowsInfo(const MatrixView& view) : RowsInfo(view.rows(), view.cols(), view.dtype()) { space = view.space(); }
  explicit RowsInfo(const VectorFile& file) : RowsInfo(file.rows(), file.cols(), file.dtype()) {}
};

// The problem, its k no larger than the base. InvalidArgument or Unsupported where it cannot be.
KnnProblem check_knn(const RowsInfo& queries, const RowsInfo& base, const KnnParams& params);

// That the metric compares rows of that type; `what` is plural.
void check_rows_dtype(std::string_view what, DType dtype, Metric metric);

// That so many results can be counted.
void check_result_size(int64_t queries, int64_t k);

void check_host_readable(std::string_view what, const MatrixView& view);
void check_output(const NeighborsView& out, int64_t queries, int64_t k);

// No neighbour for any query.
void write_nothing(Metric metric, const NeighborsView& out);

}  // namespace kith
