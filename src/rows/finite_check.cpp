#include "rows/finite_check.hpp"

#include "core/divide.hpp"
#include "core/parallel_for.hpp"
#include "core/within_limits.hpp"
#include "rows/kept_rows.hpp"
#include "rows/stored_row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace kith {
namespace {

// The first row for which is_bad(row), or -1. Skips the rows of blocks for which all_are_good(first, count).
template <typename AllTest, typename Test>
int64_t find_first(int64_t rows, const RowNumbers& numbers, const Resources& resources, const AllTest& all_are_good,
                   const Test& is_bad) {
  const auto counts = [&](int64_t i) { return numbers.kept == nullptr || keeps(numbers.kept, numbers[i]); };
  constexpr int64_t kRowsPerTask = 1024;
  const int64_t tasks = divide_up(rows, kRowsPerTask);
  if (tasks == 1 && !counts_only(resources)) {  // few queries: nothing is made for them
    int64_t i = all_are_good(0, rows) ? rows : 0;
    while (i < rows && !(counts(i) && is_bad(i))) ++i;
    return i < rows ? i : -1;
  }
  std::vector<int64_t> bad(static_cast<size_t>(tasks), -1);
  ProgressMeter meter("check", rows, resources);
  parallel_for(tasks, meter, resources, [&](int64_t task, int) {
    const int64_t end = std::min((task + 1) * kRowsPerTask, rows);
    int64_t i = task * kRowsPerTask;
    if (all_are_good(i, end - i)) i = end;
    while (i < end && !(counts(i) && is_bad(i))) ++i;
    if (i < end) bad[static_cast<size_t>(task)] = i;
    meter.add(end - task * kRowsPerTask);
  });
  for (const int64_t row : bad) {
    if (row >= 0) return row;
  }
  meter.finish();
  return -1;
}

}  // namespace

int64_t find_not_finite(const MatrixView& rows, const RowNumbers& numbers, const Resources& resources) {
  if (rows.dtype() == DType::u8 || rows.dtype() == DType::i8) return -1;
  return find_first(
      rows.rows(), numbers, resources,
      [&](int64_t first, int64_t count) { return rows_are_finite(rows.slice(first, count)); },
      [&](int64_t i) { return !row_is_finite(rows, i); });
}

RefusedRow::RefusedRow(std::string_view what, int64_t row, std::string problem)
    : InvalidArgument(fmt::format("{} row {} {}", what, row, problem)),
      what_row_(what),
      row_(row),
      problem_(std::move(problem)) {}

RefusedRow::RefusedRow(const RefusedRow& refused, const RowPlace& place)
    : InvalidArgument(fmt::format("{} row {} (row {} of '{}') {}", refused.what_row_, refused.row_, place.row,
                                  place.path, refused.problem_)),
      what_row_(refused.what_row_),
      row_(refused.row_),
      problem_(refused.problem_) {}

void throw_not_finite(std::string_view what, int64_t row) {
  throw RefusedRow(what, row, "holds a NaN or an infinity; remove it, or switch the check off (check_finite = false)");
}

void throw_negative(std::string_view what, int64_t row) {
  throw RefusedRow(
      what, row,
      "holds a value below zero; chi_square compares histograms, whose values are zero or more: choose another "
      "metric, or shift the data");
}

void refuse_not_finite(std::string_view what, const MatrixView& rows, const RowNumbers& numbers,
                       const Resources& resources) {
  const int64_t row = find_not_finite(rows, numbers, resources);
  if (row >= 0) throw_not_finite(what, numbers[row]);
}

void refuse_untrainable(const MatrixView& rows, const RowNumbers& numbers, const Resources& resources) {
  const int64_t row = find_not_finite(rows, numbers, resources);
  if (row < 0) return;
  throw RefusedRow("training", numbers[row],
                   "holds a NaN or an infinity, from which nothing can be learnt; remove it");
}

void refuse_negative(std::string_view what, const MatrixView& rows, const RowNumbers& numbers,
                     const Resources& resources) {
  if (rows.dtype() == DType::u8) return;
  const int64_t row = find_first(
      rows.rows(), numbers, resources, [](int64_t, int64_t) { return false; },
      [&](int64_t i) { return row_has_negative(rows, i); });
  if (row >= 0) throw_negative(what, numbers[row]);
}

}  // namespace kith
