#include "rows/sample_mean.hpp"

#include "rows/stored_row.hpp"

#include <algorithm>
#include <cmath>

namespace kith {

std::vector<float> sample_mean(RowSource& rows, int64_t cols) {
  constexpr int64_t kMostSamples = 256;
  std::vector<float> means(static_cast<size_t>(cols), 0.0f);
  std::vector<double> sums(means.size(), 0.0);
  std::vector<float> row(means.size());
  const int64_t samples = std::min(kMostSamples, rows.rows());
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
