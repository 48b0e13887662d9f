#include "cluster/data_sample.hpp"

#include "cluster/data_survey_cuda.hpp"
#include "cluster/row_sample.hpp"
#include "rows/sample_mean.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace kith {

DataSample sample_data(RowSource& rows, int64_t cols, const Resources& resources) {
  constexpr int64_t kMostSamples = 256;
  const int64_t samples = std::min(kMostSamples, rows.rows());
  if (const std::optional<MatrixView> there = on_gpu(rows); there && samples > 0) {
    DataSample sample;
    sample.largest = sample_cuda(*there, samples, sample.origin, resources);
    return sample;
  }
  std::vector<uint32_t> numbers(static_cast<size_t>(samples));
  for (int64_t s = 0; s < samples; ++s) {
    numbers[static_cast<size_t>(s)] = static_cast<uint32_t>(s * rows.rows() / samples);
  }
  std::vector<float> values(static_cast<size_t>(samples * cols));
  gather_as_floats(rows, numbers, values.data(), resources);
  ViewSource gathered(MatrixView(values.data(), samples, cols));
  DataSample sample;
  sample.origin = sample_mean(gathered, cols);
  const float* row = values.data();
  for (int64_t s = 0; s < samples; ++s, row += cols) {
    for (int64_t c = 0; c < cols; ++c) {
      const float magnitude = std::fabs(row[c] - sample.origin[static_cast<size_t>(c)]);
      if (std::isfinite(magnitude)) sample.largest = std::max(sample.largest, magnitude);
    }
  }
  return sample;
}

}  // namespace kith
