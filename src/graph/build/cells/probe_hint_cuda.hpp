// How many probes are likely to reach a recall: of some control rows and their true neighbours, which are known before any
// cell is probed, it is looked up in which probe of either the other's cell comes. A hint, which changes nothing that comes
// out: ranks are made once, and not again when they turn out too few.
//
// Cost: a search of some thousand rows among the cells' centres.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// Neighbours of each control row that are looked at, and cells of each row.
inline constexpr int64_t kHintNeighbors = 10;
inline constexpr int64_t kHintCells = 256;

// Rows: the control rows, then `per_row` neighbours of each. `own`: the cell of each; `ranks`: the first `ranked` cells of
// each, nearest first. `places`: of every pair the first place in which either finds the other's cell, or `ranked`.
struct HintTask {
  const int64_t* own = nullptr;
  const int64_t* ranks = nullptr;
  int64_t ranked = 0;
  int64_t control_rows = 0;
  int64_t per_row = 0;
  uint32_t* places = nullptr;
};
// Enqueues.
void launch_hint_places(const HintTask& task, cudaStream_t stream);

}  // namespace kith
