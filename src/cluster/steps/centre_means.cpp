#include "cluster/steps/centre_means.hpp"

#include "core/typed_row.hpp"
#include "kernels/distance/canonical.hpp"

#include <vector>

namespace kith {
namespace {

// Writes `mean`, scaled to length 1 for spherical; false if it cannot be scaled.
bool write_centre(std::vector<double>& mean, bool spherical, float* out, double* moves) {
  double inverse = 1;
  if (spherical) {
    inverse = canonical_inverse_norm(canonical_squared_norm(mean.data(), static_cast<int64_t>(mean.size())));
    if (!(inverse > 0)) return false;
  }
  double lanes[kCanonicalLanes] = {};
  for (size_t c = 0; c < mean.size(); ++c) {
    const auto value = static_cast<float>(mean[c] * inverse);
    double& lane = lanes[c % kCanonicalLanes];
    lane = canonical_step<KeyKind::squared_l2>(lane, value, out[c], 0, 0);
    out[c] = value;
  }
  *moves += canonical_tree(lanes);
  return true;
}

}  // namespace

void normalise_centres(const MutableMatrixView& centres) {
  std::vector<double> values(static_cast<size_t>(centres.cols()));
  double ignored = 0;
  for (int64_t i = 0; i < centres.rows(); ++i) {
    float* const centre = typed_row<float>(centres, i);
    for (size_t c = 0; c < values.size(); ++c) values[c] = centre[c];
    write_centre(values, true, centre, &ignored);
  }
}

double move_to_means(const SumsView& sums, const MutableMatrixView& centres, bool spherical) {
  std::vector<double> mean(static_cast<size_t>(centres.cols()));
  double moves = 0;
  for (int64_t i = 0; i < centres.rows(); ++i) {
    if (!(sums.weights[i] > 0)) continue;
    for (size_t c = 0; c < mean.size(); ++c) {
      mean[c] = sums.sums[i * centres.cols() + static_cast<int64_t>(c)] / sums.weights[i];
    }
    write_centre(mean, spherical, typed_row<float>(centres, i), &moves);
  }
  return moves;
}

void move_by_batch(const SumsView& sums, const MutableMatrixView& centres, double* counts, bool spherical) {
  std::vector<double> mean(static_cast<size_t>(centres.cols()));
  double ignored = 0;
  for (int64_t i = 0; i < centres.rows(); ++i) {
    if (!(sums.weights[i] > 0)) continue;
    float* const centre = typed_row<float>(centres, i);
    const double total = counts[i] + sums.weights[i];
    for (size_t c = 0; c < mean.size(); ++c) {
      const double before = static_cast<double>(centre[c]) * counts[i];
      mean[c] = (before + sums.sums[i * centres.cols() + static_cast<int64_t>(c)]) / total;
    }
    write_centre(mean, spherical, centre, &ignored);
    counts[i] = total;
  }
}

double squared_moves(const float* before, const float* after, int64_t centres, int64_t cols) {
  double moves = 0;
  for (int64_t i = 0; i < centres; ++i) {
    double lanes[kCanonicalLanes] = {};
    for (int64_t c = 0; c < cols; ++c) {
      double& lane = lanes[c % kCanonicalLanes];
      lane = canonical_step<KeyKind::squared_l2>(lane, after[i * cols + c], before[i * cols + c], 0, 0);
    }
    moves += canonical_tree(lanes);
  }
  return moves;
}

}  // namespace kith
