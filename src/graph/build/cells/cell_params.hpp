// How a collection is cut into cells.
#pragma once

#include <kith/kmeans.hpp>
#include <kith/metric.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>

namespace kith {

// Where there are more cells than this, a row ranks the kCellsRanked nearest to its own cell's centre alone.
inline constexpr int64_t kMostCellsRanked = 16384;
inline constexpr int64_t kCellsRanked = 1024;

struct CellsWish {
  Metric metric = Metric::l2;
  int64_t k = 15;
  int64_t cells = 1;
  int64_t probes = 1;                 // at most; no more than cells
  int64_t likely = 0;                 // probes that will do: a hint, which changes nothing that comes out
  std::optional<double> recall = {};  // stops the waves; none: all probes are made
  uint64_t seed = 0;
  bool gives_up = false;     // stops where what is missing will not be found within the probes
  bool keeps_order = false;  // leaves the order of the cells to rounds of NN-Descent that follow
};

// The probes that a row can have.
constexpr int64_t ranked_probes(const CellsWish& wish) {
  const int64_t most = wish.cells > kMostCellsRanked ? kCellsRanked : wish.cells;
  return wish.probes < most ? wish.probes : most;
}

// Probes before anything is concluded from the recall that they reached.
inline constexpr int64_t kFewestConcluded = 5;

// How far a wave may go beyond its end, to where all is expected to be done.
constexpr int64_t longest_wave_end(int64_t end) { return end + end / 7; }

// Probes to be made where so many are expected to do: one more wave would take longer.
constexpr int64_t enough_probes(int64_t expected) { return expected + expected / 64 + 1; }

// The end of the wave that begins with a probe: waves grow, so that few are needed, but not so much that what one holds takes
// much memory. `expected`: probes that will do in all, as far as is known, or 0: the wave that comes near them ends just
// behind, so that little is done in vain.
constexpr int64_t wave_end(int64_t first, int64_t probes, int64_t expected = 0) {
  int64_t end = 1;  // the own cell
  if (first > 0) end = first + 2 + (first < 5 ? 0 : first / 3);
  const int64_t enough = enough_probes(expected);
  if (expected > first && enough <= longest_wave_end(end)) end = enough;
  return std::min(end, probes);
}

// The probes of the widest wave, of so many in all. `foresees`: recalls are measured, so that a wave may go on to where
// all is expected to be done, and later ones begin anywhere.
constexpr int64_t widest_wave(int64_t probes, bool foresees) {
  int64_t widest = 1;
  for (int64_t first = 0; first < probes;) {
    const int64_t end = wave_end(first, probes);
    const bool anywhere = foresees && first >= kFewestConcluded;
    widest = std::max(widest, (anywhere ? std::min(longest_wave_end(end), probes) : end) - first);
    first = anywhere ? first + 1 : end;
  }
  return widest;
}

// How the centres of cells are learned: the same on every device.
inline constexpr uint64_t kCellSampleStream = 0xCE115;  // no other draw uses it
inline constexpr int64_t kSampleRowsPerCell = 48;

KMeansParams cell_training(const CellsWish& wish);
// From a sample of the rows, where it lies.
KMeans learn_cells(const MatrixView& sample, const CellsWish& wish, const Resources& resources);

}  // namespace kith
