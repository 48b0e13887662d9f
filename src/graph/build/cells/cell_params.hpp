// The parameters of partitioning a collection into cells.
#pragma once

#include <kith/kmeans.hpp>
#include <kith/metric.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>

namespace kith {

// With more cells than this, a row ranks only the kCellsRanked nearest to its own cell's centre.
inline constexpr int64_t kMostCellsRanked = 16384;
inline constexpr int64_t kCellsRanked = 1024;

class GraphShare;

struct CellsParams {
  Metric metric = Metric::l2;
  int64_t k = 15;
  int64_t cells = 1;
  int64_t probes = 1;                 // at most; clamped to the number of cells
  std::optional<double> recall = {};  // stops at the probes that it needs; none: makes all
  uint64_t seed = 0;
  bool keeps_order = false;  // leaves the order of the cells to rounds of NN-Descent that follow
  const GraphShare* share = nullptr;  // one rank's share (graph_share.hpp)
  int64_t joined_room = 0;            // neighbours held while lists are joined, counted as well
};

// The most probes that a row can have.
constexpr int64_t ranked_probes(const CellsParams& params) {
  const int64_t most = params.cells > kMostCellsRanked ? kCellsRanked : params.cells;
  return params.probes < most ? params.probes : most;
}

// How many probes per row are ranked at a time: what most graphs need, within a memory bound.
constexpr int64_t ranked_at_once(int64_t rows) {
  constexpr int64_t kMost = 128;
  constexpr int64_t kFewest = 8;
  constexpr int64_t kMostRanks = int64_t{3} << 30;
  return std::clamp(kMostRanks / std::max<int64_t>(rows, 1), kFewest, kMost);
}

// The window of ranked probes, the same for every row.
struct RankWindow {
  int64_t first = 0;
  int64_t count = 0;

  constexpr int64_t end() const { return first + count; }
  constexpr bool holds(int64_t probe) const { return probe >= first && probe < end(); }
};
// The window from a probe on: up to `end`, or as far as probes are likely to be made.
constexpr RankWindow rank_window(int64_t first, int64_t end, int64_t likely, int64_t rows) {
  return {first, std::min(std::max(likely, end) - first, ranked_at_once(rows))};
}
// The last window: the one that takes most memory.
constexpr RankWindow last_rank_window(int64_t probes, int64_t rows) {
  const int64_t count = std::min(probes, ranked_at_once(rows));
  return {probes - count, count};
}

// Estimates the pairs that `probes` probes per row compare, from the `pairs` of the first `counted` probes; at most all
// pairs.
constexpr int64_t pairs_by_probes(int64_t pairs, int64_t counted, int64_t probes, int64_t rows) {
  if (counted == probes) return pairs;
  const double all = static_cast<double>(rows) * static_cast<double>(rows);
  const double scaled = static_cast<double>(pairs) * (static_cast<double>(probes) / static_cast<double>(counted));
  return static_cast<int64_t>(std::min(scaled, all));
}

// How far a wave may exceed its end if that finishes all probes.
constexpr int64_t longest_wave_end(int64_t end) { return end + end / 7; }

// The end of the wave that begins at a probe. Waves grow, so that few are needed, within a bound on the memory of
// one.
constexpr int64_t wave_end(int64_t first, int64_t probes) {
  int64_t end = 1;  // the own cell
  if (first > 0) end = first + 2 + (first < 5 ? 0 : first / 3);
  return probes <= longest_wave_end(end) ? probes : end;
}

// The width of the widest wave among this many probes; later waves may begin anywhere.
constexpr int64_t widest_wave(int64_t probes) {
  int64_t widest = 1;
  for (int64_t first = 0; first < probes; ++first) {
    widest = std::max(widest, std::min(longest_wave_end(wave_end(first, INT64_MAX)), probes) - first);
  }
  return widest;
}

// How the cells' centres are trained, the same on every device.
inline constexpr uint64_t kCellSampleStream = 0xCE115;  // used by no other draw
inline constexpr int64_t kSampleRowsPerCell = 48;

KMeansParams cell_training(const CellsParams& params);
// Trains on a sample of the rows, on the device that holds it.
KMeans learn_cells(const MatrixView& sample, const CellsParams& params, const Resources& resources);

}  // namespace kith
