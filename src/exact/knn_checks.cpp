#include "exact/knn_checks.hpp"

#include <kith/error.hpp>

#include "exact/metric_unit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace kith {

void check_rows_dtype(std::string_view what, DType dtype, Metric metric) {
  if (metric == Metric::hamming && dtype != DType::u8) {
    throw InvalidArgument(
        fmt::format("the {} are {}; hamming counts the differing bits of u8 rows: pack the bits into "
                    "bytes, or choose another metric",
                    what, name_of(dtype)));
  }
}

KnnProblem check_knn(const RowsInfo& queries, const RowsInfo& base, const KnnParams& params) {
  params.validate();
  check_rows_dtype("queries", queries.dtype, params.metric);
  check_rows_dtype("base vectors", base.dtype, params.metric);
  if (queries.cols != base.cols) {
    throw InvalidArgument(
        fmt::format("the queries have {} columns and the base has {}; they must be the same", queries.cols, base.cols));
  }
  if (base.cols < 1) throw InvalidArgument("vectors without columns cannot be searched");
  if (base.rows > std::numeric_limits<int32_t>::max()) {
    throw Unsupported(
        fmt::format("a base of {} rows; one search takes up to {}", base.rows, std::numeric_limits<int32_t>::max()));
  }
  check_result_size(queries.rows, params.k);
  KnnProblem problem;
  problem.queries = queries.rows;
  problem.rows = base.rows;
  problem.cols = base.cols;
  problem.k = std::min(params.k, std::max<int64_t>(base.rows, 1));
  problem.result_k = params.k;
  problem.query_dtype = queries.dtype;
  problem.base_dtype = base.dtype;
  problem.query_space = queries.space;
  problem.base_space = base.space;
  problem.metric = params.metric;
  problem.check_finite = params.check_finite;
  return problem;
}

void check_result_size(int64_t queries, int64_t k) {
  constexpr int64_t kMostResults = int64_t{1} << 40;
  if (k > kMostResults || (queries > 0 && k > kMostResults / queries)) {
    throw InvalidArgument(
        fmt::format("{} queries with k = {} give more results than memory can hold; ask for fewer", queries, k));
  }
}

void check_host_readable(std::string_view what, const MatrixView& view) {
  if (!view.space().host_readable()) {
    throw Unsupported(
        fmt::format("the {} lie in the memory of cuda:{}; copy them to the host", what, view.space().device));
  }
}

void check_output(const NeighborsView& out, int64_t queries, int64_t k) {
  if (out.queries != queries || out.k != k) {
    throw InvalidArgument(fmt::format("the output is {} x {}, the result {} x {}", out.queries, out.k, queries, k));
  }
  if (queries > 0 && (out.ids == nullptr || out.distances == nullptr)) {
    throw InvalidArgument("the output's ids and distances must not be null");
  }
}

void write_nothing(Metric metric, const NeighborsView& out) {
  std::fill_n(out.ids, out.queries * out.k, int64_t{-1});
  std::fill_n(out.distances, out.queries * out.k, distance_of_nothing(metric));
}

}  // namespace kith
