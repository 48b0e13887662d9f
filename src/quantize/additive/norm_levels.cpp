#include "quantize/additive/norm_levels.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace kith {
namespace {

constexpr int kMostIterations = 10000;

// As FAISS does, in float64 and rounded once.
float middle_of_step(float least, float largest, int64_t step) {
  const double share = (static_cast<double>(step) + 0.5) / static_cast<double>(kNormLevels);
  return static_cast<float>(share * static_cast<double>(largest - least) + static_cast<double>(least));
}

std::vector<float> levels_of(std::vector<float> norms) {
  const size_t count = norms.size();
  std::vector<double> sums(count + 1, 0.0);
  for (size_t i = 0; i < count; ++i) sums[i + 1] = sums[i] + static_cast<double>(norms[i]);
  const auto levels = static_cast<size_t>(kNormLevels);
  std::vector<float> centres(levels);
  // Half of them by rank, where norms are many, and half at equal steps, where they are few.
  for (size_t i = 0; i < levels; ++i) {
    centres[i] = i % 2 == 0 ? norms[(2 * i + 1) * (count - 1) / (2 * levels)]
                            : middle_of_step(norms.front(), norms.back(), static_cast<int64_t>(i));
  }
  std::sort(centres.begin(), centres.end());
  std::vector<size_t> ends(levels, 0);
  for (int iteration = 0; iteration < kMostIterations; ++iteration) {
    bool changed = false;
    size_t begin = 0;
    for (size_t i = 0; i < levels; ++i) {
      size_t end = count;
      if (i + 1 < levels) {
        const double middle = (static_cast<double>(centres[i]) + static_cast<double>(centres[i + 1])) / 2;
        const auto after = std::upper_bound(norms.begin() + static_cast<std::ptrdiff_t>(begin), norms.end(), middle,
                                            [](double value, float norm) { return value < static_cast<double>(norm); });
        end = static_cast<size_t>(after - norms.begin());
      }
      changed = changed || ends[i] != end;
      ends[i] = end;
      begin = end;
    }
    if (!changed) break;
    begin = 0;
    for (size_t i = 0; i < levels; ++i) {  // one without norms stays where it is
      if (ends[i] > begin)
        centres[i] = static_cast<float>((sums[ends[i]] - sums[begin]) / static_cast<double>(ends[i] - begin));
      begin = ends[i];
    }
  }
  return centres;
}

}  // namespace

std::vector<float> norm_levels(const CodeFormat& format, const std::vector<float>& values) {
  const auto count = static_cast<size_t>(norm_value_count(format.norm));
  const auto first = values.end() - static_cast<std::ptrdiff_t>(count);
  if (format.norm == CodeNorm::cqint8) return {first, values.end()};
  std::vector<float> levels;
  if (format.norm != CodeNorm::qint8) return levels;
  for (int64_t i = 0; i < kNormLevels; ++i) levels.push_back(middle_of_step(first[0], first[1], i));
  return levels;
}

std::vector<float> train_norm_values(CodeNorm norm, std::vector<float> norms) {
  if (norm_value_count(norm) == 0) return {};
  std::erase_if(norms, [](float value) { return !std::isfinite(value); });
  if (norms.empty()) norms.push_back(0.0f);
  std::sort(norms.begin(), norms.end());
  if (norm == CodeNorm::qint8) return {norms.front(), norms.back()};
  return levels_of(std::move(norms));
}

}  // namespace kith
