#include "cluster/start/start_choice.hpp"

#include "cluster/draw/kmeans_plus_plus.hpp"

#include <algorithm>

namespace kith {
namespace {

// Multiplications of k-means++, and values that it looks at for each centre. A core does the first in about a second;
// the second are 256 MiB of f32.
constexpr double kMostStartWork = 0x1p33;
constexpr double kMostValues = 0x1p26;
constexpr int64_t kSampledPerCentre = 32;
constexpr int64_t kLeastSampled = int64_t{1} << 14;
constexpr int64_t kFewForRounds = 32;  // for so few, candidates drawn in rounds would be few too
constexpr int64_t kCandidatesPerCentre = 4;

}  // namespace

StartChoice choose_start(const KMeansParams& params, int64_t rows, int64_t cols) {
  if (params.init != KMeansInit::kmeans_plus_plus) return {};
  const int64_t k = params.clusters;
  const auto sampled = [&](int64_t count) { return StartChoice{std::min(count, rows), 0}; };
  if (const int64_t per_centre = params.init_points_per_centre; per_centre != kAutomaticInitPoints) {
    return sampled(per_centre == 0 || per_centre > rows / k ? rows : per_centre * k);
  }
  const int64_t least = std::max(kSampledPerCentre * k, kLeastSampled);
  if (params.batch_size > 0) return sampled(least);
  // As many as are cheap.
  const auto columns = static_cast<double>(cols);
  const double per_row = columns * static_cast<double>(k) * static_cast<double>(plus_plus_trials(k));
  const auto cheap = static_cast<int64_t>(std::min(kMostStartWork / per_row, kMostValues / columns));
  if (rows <= cheap || params.spherical || k < kFewForRounds) {
    return sampled(std::max(cheap, least));
  }
  return {0, std::min(kCandidatesPerCentre * k, rows)};
}

}  // namespace kith
