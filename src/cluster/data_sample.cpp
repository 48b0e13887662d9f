#include "cluster/data_sample.hpp"

#include "cluster/data_survey_cuda.hpp"
#include "cluster/row_sample.hpp"
#include "rows/sample_mean.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

namespace kith {
namespace {

DataSample sample_on_host(RowSource& rows, int64_t cols, int64_t samples, const Resources& resources) {
  std::vector<uint32_t> numbers(static_cast<size_t>(samples));
  for (int64_t s = 0; s < samples; ++s) {
    numbers[static_cast<size_t>(s)] = static_cast<uint32_t>(s * rows.rows() / samples);
  }
  std::vector<float> values(static_cast<size_t>(samples * cols));
  gather_as_floats(rows, numbers, values.data(), resources);
  ViewSource gathered(MatrixView(values.data(), samples, cols));
  DataSample sample;
  sample.origin = sample_mean(gathered, cols);
  for (int64_t s = 0; s < samples; ++s) {
    const float* const row = values.data() + s * cols;
    const float* const origin = sample.origin.data();
    const float all = farthest_apart(row, origin, cols);
    if (std::isfinite(all)) sample.largest = std::max(sample.largest, all);
    for (int64_t c = 0; !std::isfinite(all) && c < cols; ++c) {
      const float magnitude = std::fabs(row[c] - origin[c]);
      if (std::isfinite(magnitude)) sample.largest = std::max(sample.largest, magnitude);
    }
  }
  return sample;
}

}  // namespace

std::function<DataSample()> begin_sample(RowSource& rows, int64_t cols, const Resources& resources) {
  const int64_t samples = std::min<int64_t>(kMostDataSamples, rows.rows());
  if (const std::optional<MatrixView> there = on_gpu(rows); there && samples > 0) {
    return begin_sample_cuda(*there, samples, resources);
  }
  return [&rows, cols, resources, samples] { return sample_on_host(rows, cols, samples, resources); };
}

DataSample sample_data(RowSource& rows, int64_t cols, const Resources& resources) {
  return begin_sample(rows, cols, resources)();
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
