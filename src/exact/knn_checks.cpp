#include "exact/knn_checks.hpp"

#include <kith/error.hpp>

#include "core/byte_size.hpp"
#include "core/metric_unit.hpp"

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

void check_result_size(int64_t queries, int64_t k) {
  constexpr int64_t kMostResults = int64_t{1} << 40;
  constexpr int64_t kResultBytes = 12;  // an id and a distance
  if (k > kMostResults || (queries > 0 && k > kMostResults / queries)) {
    throw OutOfMemory(
        fmt::format("{} queries with k = {} give more results than memory can hold; ask for fewer", queries, k),
        saturating_multiply(saturating_multiply(queries, k), kResultBytes));
  }
}

void check_host_readable(std::string_view what, const MatrixView& view) {
  if (!view.space().host_readable()) {
    throw Unsupported(
        fmt::format("the {} are in the memory of cuda:{}; copy them to the host", what, view.space().device));
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

void warn_of_short_base(int64_t queries, int64_t rows, int64_t k, const Resources& resources) {
  if (rows == 0 || k <= rows) return;
  resources.log(LogLevel::warning,
                fmt::format("k = {}, but the base has {} row{}: the rest of each result is id -1{}", k, rows,
                            rows == 1 ? "" : "s", queries > rows ? "; were queries and base swapped?" : ""));
}

void write_nothing(Metric metric, const NeighborsView& out) {
  std::fill_n(out.ids, out.queries * out.k, int64_t{-1});
  std::fill_n(out.distances, out.queries * out.k, distance_of_nothing(metric));
}

}  // namespace kith
