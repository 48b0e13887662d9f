#include "rows/sample_mean.hpp"

#include "rows/stored_row.hpp"

#include <algorithm>
#include <cmath>

namespace kith {

int64_t sampled_rows(int64_t rows) { return std::min(std::clamp<int64_t>(rows / 8, 32, 256), rows); }

std::vector<float> sample_mean(RowSource& rows, int64_t cols) {
  return sample_mean(rows, cols, sampled_rows(rows.rows()));
}

std::vector<float> sample_mean(RowSource& rows, int64_t cols, int64_t samples) {
  std::vector<float> means(static_cast<size_t>(cols), 0.0f);
  std::vector<double> sums(means.size(), 0.0);
  std::vector<float> row(means.size());
  for (int64_t s = 0; s < samples; ++s) {
    const float* const values = floats_of(rows.fetch(s * rows.rows() / samples, 1), 0, row.data());
    for (size_t c = 0; c < row.size(); ++c) sums[c] += values[c];
  }
  for (size_t c = 0; c < means.size() && samples > 0; ++c) {
    const auto mean = static_cast<float>(sums[c] / static_cast<double>(samples));
    if (std::isfinite(mean)) means[c] = mean;
  }
  return means;
}

}  // namespace kith
