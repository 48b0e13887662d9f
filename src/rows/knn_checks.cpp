#include "rows/knn_checks.hpp"

#include <kith/error.hpp>

#include "core/byte_size.hpp"
#include "core/metric_unit.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kith {

void check_rows_dtype(std::string_view what, DType dtype, Metric metric) {
  if (metric == Metric::hamming && dtype != DType::u8) {
    throw InvalidArgument(
        fmt::format("the {} are {}; hamming counts the differing bits of u8 rows: pack the bits into "
                    "bytes, or choose another metric",
                    what, name_of(dtype)));
  }
}

void refuse_f64(std::string_view what, DType dtype) {
  if (dtype != DType::f64) return;
  throw Unsupported(fmt::format("the {} are f64, which a metric of your own does not get: give them as f32", what));
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
