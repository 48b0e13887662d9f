// Recall counts hits in whole numbers and divides once, so that parts of a result can be added up without rounding.
#include <kith/recall.hpp>

#include <kith/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kNobody = -1;

void check_matrix(const IdMatrixView& matrix, std::string_view name) {
  if (matrix.rows < 0 || matrix.cols < 0) {
    throw InvalidArgument(fmt::format("{} ids of {} x {} cannot be", name, matrix.rows, matrix.cols));
  }
  if (matrix.ids == nullptr && matrix.rows > 0 && matrix.cols > 0) {
    throw InvalidArgument(
        fmt::format("a null pointer was given for the {} x {} {} ids", matrix.rows, matrix.cols, name));
  }
}

void check_pair(const IdMatrixView& found, const IdMatrixView& truth) {
  check_matrix(found, "found");
  check_matrix(truth, "true");
  if (found.rows != truth.rows) {
    throw InvalidArgument(
        fmt::format("found ids have {} rows and true ids {}; both need one row for each query, in the same order",
                    found.rows, truth.rows));
  }
  if (found.rows == 0) throw InvalidArgument("recall needs at least one query; found and true ids have no rows");
}

void check_count(std::string_view name, int64_t value, int64_t cols, std::string_view whose) {
  if (value < 1 || value > cols) {
    throw InvalidArgument(
        fmt::format("{} = {}; allowed are 1 to {}, the columns of the {} ids", name, value, cols, whose));
  }
}

// A missing true neighbour cannot be found, so any number given for it would mislead.
void check_true_neighbors(const int64_t* truth, int64_t row, int64_t count) {
  const int64_t* missing = std::find(truth, truth + count, kNobody);
  if (missing == truth + count) return;
  throw InvalidArgument(
      fmt::format("row {} of the true ids holds {} neighbours (the next id is -1), {} are asked for; "
                  "lower k or give a truth of enough columns",
                  row, missing - truth, count));
}

// The same of an id that is there twice; `sorted` are the row's.
void check_distinct(const std::vector<int64_t>& sorted, int64_t row) {
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice == sorted.end()) return;
  throw InvalidArgument(
      fmt::format("row {} of the true ids holds {} twice; a row can be a true neighbour once", row, *twice));
}

// How many true ids are among the found ones; both are sorted.
int64_t count_common(const std::vector<int64_t>& found, const std::vector<int64_t>& truth) {
  int64_t common = 0;
  auto candidate = found.begin();
  for (const int64_t id : truth) {
    candidate = std::lower_bound(candidate, found.end(), id);
    common += candidate != found.end() && *candidate == id;
  }
  return common;
}

}  // namespace

double one_recall(const IdMatrixView& found, const IdMatrixView& truth, int64_t r) {
  check_pair(found, truth);
  check_count("R", r, found.cols, "found");
  check_count("the nearest neighbour's rank", 1, truth.cols, "true");
  int64_t hits = 0;
  for (int64_t row = 0; row < found.rows; ++row) {
    const int64_t* nearest = truth.ids + row * truth.cols;
    check_true_neighbors(nearest, row, 1);
    const int64_t* first = found.ids + row * found.cols;
    hits += std::find(first, first + r, *nearest) != first + r;
  }
  return static_cast<double>(hits) / static_cast<double>(found.rows);
}

double k_recall(const IdMatrixView& found, const IdMatrixView& truth, int64_t k) {
  check_pair(found, truth);
  check_count("k", k, found.cols, "found");
  check_count("k", k, truth.cols, "true");
  std::vector<int64_t> found_row;
  std::vector<int64_t> true_row;
  int64_t hits = 0;
  for (int64_t row = 0; row < found.rows; ++row) {
    const int64_t* truth_ids = truth.ids + row * truth.cols;
    check_true_neighbors(truth_ids, row, k);
    found_row.assign(found.ids + row * found.cols, found.ids + row * found.cols + k);
    true_row.assign(truth_ids, truth_ids + k);
    std::sort(found_row.begin(), found_row.end());
    std::sort(true_row.begin(), true_row.end());
    check_distinct(true_row, row);
    hits += count_common(found_row, true_row);
  }
  return static_cast<double>(hits) / (static_cast<double>(found.rows) * static_cast<double>(k));
}

}  // namespace kith
