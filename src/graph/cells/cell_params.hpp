// How a collection is cut into cells.
#pragma once

#include <kith/metric.hpp>

#include <cstdint>

namespace kith {

// Where there are more cells than this, a row ranks the kCellsRanked nearest to its own cell's centre alone.
inline constexpr int64_t kMostCellsRanked = 16384;
inline constexpr int64_t kCellsRanked = 1024;

struct CellParams {
  Metric metric = Metric::l2;
  int64_t cells = 1;
  int64_t probes = 1;  // no more than cells
  uint64_t seed = 0;
};

// The probes that a row can have.
constexpr int64_t ranked_probes(const CellParams& params) {
  const int64_t most = params.cells > kMostCellsRanked ? kCellsRanked : params.cells;
  return params.probes < most ? params.probes : most;
}

}  // namespace kith
