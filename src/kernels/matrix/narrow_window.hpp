// The window of rows of few columns that differences in f32 cannot rule out: the proof behind narrow_minima_cuda.hpp.
//
// Halves resolve about 2^-11 of a row's norm. Of a million rows in one or two columns, thousands are nearer to each
// other than that. A sum of squared differences in f32 has no cancellation: with v the sum of (q - x)^2, each
// difference is rounded once, each square and each addition once, so that v is within kNarrowLoss of its true value,
// relatively, and within kNarrowTiny where squares are below f32's normal numbers. Vectors of length 1 (cosine) are
// rounded to f32 before, which moves a distance by kNarrowMoved at most.
//
// So where k rows have values of at most `kth`, the k-th smallest distance is at most `reach`, and a row that is no
// farther, but for the rounding of its key, has a value of at most `threshold`.
#pragma once

#include "kernels/matrix/candidate_window.hpp"

#include <cmath>
#include <cstdint>

namespace kith {

inline constexpr int64_t kNarrowCols = 3;
inline constexpr double kNarrowLoss = 0x1p-21;
inline constexpr double kNarrowTiny = 0x1p-140;
inline constexpr double kNarrowMoved = 0x1p-22;

// One and two columns; of cosine, whose vectors of three columns lie on a sphere, one more.
KITH_HOST_DEVICE constexpr bool is_narrow(KeyKind kind, int64_t cols) {
  return kind == KeyKind::cosine ? cols <= kNarrowCols : has_differences(kind) && cols < kNarrowCols;
}

KITH_HOST_DEVICE inline CandidateWindow narrow_window(KeyKind kind, int64_t cols, double kth) {
  const float moved = kind == KeyKind::cosine ? static_cast<float>(kNarrowMoved) : 0.0f;
  const double reach = sqrt(kth * (1 + kNarrowLoss) + kNarrowTiny) + moved;
  // Vectors without a norm to lose anything of: what is left of the window is the reach, the ties and `moved`.
  CandidateWindow window = window_within({kind, false, cols, 1.0}, {{0, 0}, 0, 0}, {0, moved}, reach);
  const double threshold = 2.0 * window.threshold * (1 + kNarrowLoss) + kNarrowTiny;
  window.threshold = static_cast<float>(threshold + threshold * 0x1p-22);
  return window;
}

}  // namespace kith
