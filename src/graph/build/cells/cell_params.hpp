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

class GraphShare;

struct CellsWish {
  Metric metric = Metric::l2;
  int64_t k = 15;
  int64_t cells = 1;
  int64_t probes = 1;                 // at most; no more than cells
  std::optional<double> recall = {};  // no more probes than it needs; none: all are made
  uint64_t seed = 0;
  bool keeps_order = false;  // leaves the order of the cells to rounds of NN-Descent that follow
  const GraphShare* share = nullptr;  // of a rank among others (graph_share.hpp)
  int64_t joined_room = 0;            // neighbours that it keeps while lists are joined, also where memory is only counted
};

// The probes that a row can have.
constexpr int64_t ranked_probes(const CellsWish& wish) {
  const int64_t most = wish.cells > kMostCellsRanked ? kCellsRanked : wish.cells;
  return wish.probes < most ? wish.probes : most;
}

// Probes of every row that are ranked at a time: what most graphs need, within some memory.
constexpr int64_t ranked_at_once(int64_t rows) {
  constexpr int64_t kMost = 128;
  constexpr int64_t kFewest = 8;
  constexpr int64_t kMostRanks = int64_t{3} << 30;
  return std::clamp(kMostRanks / std::max<int64_t>(rows, 1), kFewest, kMost);
}

// The probes of every row that are ranked.
struct RankWindow {
  int64_t first = 0;
  int64_t count = 0;

  constexpr int64_t end() const { return first + count; }
  constexpr bool holds(int64_t probe) const { return probe >= first && probe < end(); }
};
// From a probe on, as many as are wanted up to `end` or likely to be made.
constexpr RankWindow rank_window(int64_t first, int64_t end, int64_t likely, int64_t rows) {
  return {first, std::min(std::max(likely, end) - first, ranked_at_once(rows))};
}
// The last of so many: what takes most.
constexpr RankWindow last_rank_window(int64_t probes, int64_t rows) {
  const int64_t count = std::min(probes, ranked_at_once(rows));
  return {probes - count, count};
}

// Estimates the pairs that `probes` probes per row compare, from the `pairs` of the first `counted` probes; at most as
// many as there are.
constexpr int64_t pairs_by_probes(int64_t pairs, int64_t counted, int64_t probes, int64_t rows) {
  if (counted == probes) return pairs;
  const double all = static_cast<double>(rows) * static_cast<double>(rows);
  const double scaled = static_cast<double>(pairs) * (static_cast<double>(probes) / static_cast<double>(counted));
  return static_cast<int64_t>(std::min(scaled, all));
}

// How far a wave may go beyond its end, to where all is done.
constexpr int64_t longest_wave_end(int64_t end) { return end + end / 7; }

// The end of the wave that begins with a probe: waves grow, so that few are needed, but not so much that what one holds
// takes much memory.
constexpr int64_t wave_end(int64_t first, int64_t probes) {
  int64_t end = 1;  // the own cell
  if (first > 0) end = first + 2 + (first < 5 ? 0 : first / 3);
  return probes <= longest_wave_end(end) ? probes : end;
}

// The probes of the widest wave, of up to so many in all; after the first ones waves begin anywhere.
constexpr int64_t widest_wave(int64_t probes) {
  int64_t widest = 1;
  for (int64_t first = 0; first < probes; ++first) {
    widest = std::max(widest, std::min(longest_wave_end(wave_end(first, INT64_MAX)), probes) - first);
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
