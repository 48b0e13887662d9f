#include "cluster/data/data_survey.hpp"

#include "cluster/data/data_survey_cuda.hpp"
#include "core/divide.hpp"
#include "kernels/assign/centre_sums.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "rows/finite_check.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>

namespace kith {
namespace {

int64_t blocks_in(int64_t rows) { return divide_up(rows, kSumBlock); }

}  // namespace

int64_t DataSurvey::bytes_for(int64_t piece_rows, int64_t cols, int threads) {
  return array_bytes<double>(blocks_in(piece_rows) * cols * 2) + array_bytes<float>(threads * cols);
}

DataSurvey::DataSurvey(const std::vector<float>& origin, bool directions, int64_t piece_rows,
                       const Resources& resources)
    : origin_(directions ? std::vector<float>(origin.size(), 0.0f) : origin),
      directions_(directions),
      sums_(origin.size() * 2, 0.0),
      blocks_(blocks_in(piece_rows) * static_cast<int64_t>(origin.size()) * 2, "the columns' variances", resources),
      row_(resources.threads() * static_cast<int64_t>(origin.size()), "the columns' variances", resources) {}

void DataSurvey::add(const MatrixView& rows, int64_t first, bool check_finite, ProgressMeter& meter,
                     const Resources& resources) {
  const int64_t cols = rows.cols();
  if (!rows.space().host_readable()) {
    const int64_t bad = survey_cuda(rows, origin_, directions_, check_finite, sums_, resources);
    if (bad >= 0) throw_not_finite("data", first + bad);
    rows_ += rows.rows();
    return;
  }
  std::atomic<int64_t> first_bad{INT64_MAX};
  parallel_for(blocks_in(rows.rows()), meter, resources, [&](int64_t block, int slot) {
    double* const sums = blocks_.data() + block * cols * 2;
    double* const squares = sums + cols;
    float* const row = row_.data() + slot * cols;
    std::fill_n(sums, cols * 2, 0.0);
    const int64_t end = std::min((block + 1) * kSumBlock, rows.rows());
    for (int64_t i = block * kSumBlock; i < end; ++i) {
      widen_row(rows, i, row);
      const double scale = directions_ ? canonical_inverse_norm(canonical_squared_norm_cpu(row, cols)) : 1.0;
      for (int64_t c = 0; c < cols; ++c) {
        const double value = static_cast<double>(row[c]) * scale - static_cast<double>(origin_[static_cast<size_t>(c)]);
        sums[c] += value;
        squares[c] += value * value;
      }
    }
    if (!check_finite || std::all_of(sums, sums + cols, [](double sum) { return std::isfinite(sum); })) return;
    int64_t i = block * kSumBlock;
    while (i < end && row_is_finite(rows, i)) ++i;
    int64_t seen = first_bad.load();
    while (i < end && i < seen && !first_bad.compare_exchange_weak(seen, i)) {
    }
  });
  if (first_bad != INT64_MAX) throw_not_finite("data", first + first_bad);
  for (int64_t block = 0; block < blocks_in(rows.rows()); ++block) {
    const double* const sums = blocks_.data() + block * cols * 2;
    for (size_t c = 0; c < sums_.size(); ++c) sums_[c] += sums[c];
  }
  rows_ += rows.rows();
}

double DataSurvey::variance() const {
  const size_t cols = sums_.size() / 2;
  const auto n = static_cast<double>(rows_);
  double total = 0;
  for (size_t c = 0; c < cols; ++c) {
    const double mean = sums_[c] / n;
    total += std::max(sums_[cols + c] / n - mean * mean, 0.0);
  }
  return cols == 0 ? 0 : total / static_cast<double>(cols);
}

}  // namespace kith
