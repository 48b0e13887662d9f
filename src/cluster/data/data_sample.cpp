#include "cluster/data/data_sample.hpp"

#include "cluster/data/data_survey_cuda.hpp"
#include "rows/row_sample.hpp"
#include "rows/sample_mean.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

namespace kith {
namespace {

// The largest magnitude of a row's values less the origin; those that are not finite are left out.
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
  DataSample sample;
  const auto number = [&](int64_t s) { return sampled_row(s, rows.rows(), samples); };
  if (rows.info().in_memory) {  // where they lie
    std::vector<float> room(static_cast<size_t>(cols));
    sample.origin = sample_mean(rows, cols, samples);
    for (int64_t s = 0; s < samples; ++s) {
      const float* const row = floats_of(rows.fetch(number(s), 1), 0, room.data());
      sample.largest = std::max(sample.largest, largest_of(row, sample.origin));
    }
    return sample;
  }
  std::vector<uint32_t> numbers(static_cast<size_t>(samples));
  for (int64_t s = 0; s < samples; ++s) numbers[static_cast<size_t>(s)] = static_cast<uint32_t>(number(s));
  std::vector<float> values(static_cast<size_t>(samples * cols));
  gather_as_floats(rows, numbers, values.data(), resources);
  ViewSource gathered(MatrixView(values.data(), samples, cols));
  sample.origin = sample_mean(gathered, cols, samples);
  for (int64_t s = 0; s < samples; ++s) {
    sample.largest = std::max(sample.largest, largest_of(values.data() + s * cols, sample.origin));
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

}  // namespace kith
