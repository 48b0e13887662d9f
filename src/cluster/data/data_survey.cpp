#include "cluster/data/data_survey.hpp"

#include "cluster/data/kmeans_checks.hpp"
#include "core/divide.hpp"
#include "kernels/assign/centre_sums.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "rows/finite_check.hpp"
#include "rows/row_sample.hpp"
#include "rows/row_source.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <optional>

namespace kith {
namespace {

int64_t blocks_in(int64_t rows) { return divide_up(rows, kSumBlock); }

// The largest magnitude of a row's values minus the origin; those that are not finite are left out.
float largest_of(const float* row, const std::vector<float>& origin) {
  const auto cols = static_cast<int64_t>(origin.size());
  const float all = farthest_apart(row, origin.data(), cols);
  if (std::isfinite(all)) return all;
  float largest = 0;
  for (int64_t c = 0; c < cols; ++c) {
    const float magnitude = std::fabs(row[c] - origin[static_cast<size_t>(c)]);
    if (std::isfinite(magnitude)) largest = std::max(largest, magnitude);
  }
  return largest;
}

int64_t sampled_row(int64_t number, int64_t rows, int64_t samples) { return number * rows / samples; }

DataSample sample_on_host(RowSource& rows, int64_t cols, int64_t samples, const Resources& resources) {
  std::vector<float> values;  // of rows that are not in memory
  if (!rows.info().in_memory) {
    std::vector<uint32_t> numbers;
    for (int64_t s = 0; s < samples; ++s) {
      numbers.push_back(static_cast<uint32_t>(sampled_row(s, rows.rows(), samples)));
    }
    values.resize(static_cast<size_t>(samples * cols));
    gather_as_floats(rows, numbers, values.data(), resources);
  }
  ViewSource gathered(MatrixView(values.data(), values.empty() ? 0 : samples, cols));
  RowSource& from = values.empty() ? rows : gathered;
  std::vector<float> room(static_cast<size_t>(cols));
  DataSample sample;
  sample.origin = sample_mean(from, cols, samples);
  for (int64_t s = 0; s < samples; ++s) {
    const float* const row = floats_of(from.fetch(sampled_row(s, from.rows(), samples), 1), 0, room.data());
    sample.largest = std::max(sample.largest, largest_of(row, sample.origin));
  }
  return sample;
}

}  // namespace

int64_t last_sampled_row(int64_t rows) {
  const int64_t samples = sampled_rows(rows);
  return sampled_row(samples - 1, rows, samples);
}

DataSample sample_data(RowSource& rows, int64_t cols, const Resources& resources) {
  // As many wherever they lie: scales, and with them the last bits of extreme data, follow from these.
  const int64_t samples = sampled_rows(rows.rows());
  if (const std::optional<MatrixView> there = on_gpu(rows); there && samples > 0) {
    return sample_cuda(*there, samples, resources);
  }
  return sample_on_host(rows, cols, samples, resources);
}

// Magnitudes are in the order of their bits, and maxima of integers are taken several at a time.
float farthest_apart(const float* a, const float* b, int64_t count) {
  int32_t largest = 0;
  for (int64_t c = 0; c < count; ++c) {
    const auto bits = std::bit_cast<int32_t>(std::fabs(a[c] - b[c]));
    largest = bits > largest ? bits : largest;
  }
  return std::bit_cast<float>(largest);
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
  std::atomic<bool> finite = true;
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
    if (!std::all_of(sums, sums + cols, [](double sum) { return std::isfinite(sum); })) finite = false;
  });
  if (check_finite && !finite) check_rows_finite(rows, first, resources);
  const double* const begin = blocks_.data();
  const double* const end = begin + blocks_in(rows.rows()) * cols * 2;
  if (keeps_) kept_.insert(kept_.end(), begin, end);
  for (const double* block = begin; !keeps_ && block < end; block += cols * 2) add_block(block, sums_);
  rows_ += rows.rows();
}

void DataSurvey::add_block(const double* block, std::vector<double>& sums) const {
  for (size_t c = 0; c < sums.size(); ++c) sums[c] += block[c];
}

void DataSurvey::fold(std::vector<double>& sums, int64_t& rows) {
  for (size_t at = 0; at < kept_.size(); at += sums.size()) add_block(kept_.data() + at, sums);
  rows += rows_;
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
