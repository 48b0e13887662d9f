#include "exact/search_checks.hpp"

#include <kith/error.hpp>

#include <fmt/format.h>

#include <limits>

namespace kith {

SearchShape check_search(const RowsInfo& queries, const RowsInfo& base, Metric metric) {
  KnnParams{1, metric}.validate();
  check_rows_dtype("queries", queries.dtype, metric);
  check_rows_dtype("base vectors", base.dtype, metric);
  if (queries.cols != base.cols) {
    throw InvalidArgument(
        fmt::format("the queries have {} columns and the base has {}; they must be the same", queries.cols, base.cols));
  }
  if (base.cols < 1) throw InvalidArgument("vectors without columns cannot be searched");
  if (base.rows > std::numeric_limits<int32_t>::max()) {
    throw Unsupported(
        fmt::format("a base of {} rows; one search takes up to {}", base.rows, std::numeric_limits<int32_t>::max()));
  }
  SearchShape shape;
  shape.queries = queries.rows;
  shape.rows = base.rows;
  shape.cols = base.cols;
  shape.query_dtype = queries.dtype;
  shape.base_dtype = base.dtype;
  shape.metric = metric;
  shape.query_space = queries.space;
  shape.base_space = base.space;
  shape.queries_in_memory = queries.in_memory;
  shape.base_in_memory = base.in_memory;
  return shape;
}

SearchShape check_knn(const RowsInfo& queries, const RowsInfo& base, const KnnParams& params) {
  params.validate();
  const SearchShape shape = check_search(queries, base, params.metric);
  check_result_size(queries.rows, params.k);
  return shape;
}

void check_knn(const MatrixView& queries, const MatrixView& base, const KnnParams& params) {
  (void)check_knn(RowsInfo(queries), RowsInfo(base), params);
}

void check_knn(const VectorFile& queries, const VectorFile& base, const KnnParams& params) {
  (void)check_knn(RowsInfo(queries), RowsInfo(base), params);
}

}  // namespace kith
