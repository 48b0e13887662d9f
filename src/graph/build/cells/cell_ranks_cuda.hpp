// Rows and cells on a GPU: ranks from what a search found, where rows lie cell by cell, and the rows that probe each cell.
//
// Rows of a cell, and those that probe it, come in no order: what is made of them does not depend on one.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

inline constexpr uint32_t kNoPlace = 0xFFFFFFFFu;  // of no row

struct RanksTask {
  const int64_t* found = nullptr;     // count x stride: cells, nearest first
  int64_t stride = 0;
  int64_t count = 0;                  // rows
  int64_t first = 0;                  // the first one's number
  uint32_t* own = nullptr;    // each row's cell
  bool sets_own = false;      // it is the first found
  uint32_t* ranks = nullptr;  // rows x probes, the own cell first; null: only own cells are wanted
  int64_t probes = 0;
};
void launch_put_ranks(const RanksTask& task, cudaStream_t stream);

// Adds up how many rows name each cell in columns [first, end) of rows x stride cells.
struct CellColumns {
  const uint32_t* cells = nullptr;
  int64_t stride = 1;
  int64_t rows = 0;
  int64_t first = 0;
  int64_t end = 1;
};
void launch_count_cells(const CellColumns& columns, int64_t cells, uint32_t* counts, cudaStream_t stream);

// Every row to the next free place of its cell. `next`, one for each cell, holds the first and is raised.
// `places`: the row at each place, kNoPlace before. `row_places`: each row's place.
void launch_put_places(const CellColumns& columns, int64_t cells, uint32_t* next, uint32_t* places,
                       uint32_t* row_places, cudaStream_t stream);
// Every row's place to the next free slot of each cell that it names. `slots` hold kNoPlace before.
void launch_put_slots(const CellColumns& columns, int64_t cells, const uint32_t* row_places, uint32_t* next,
                      uint32_t* slots, cudaStream_t stream);

// The same where columns were selected among the cells near each row's own.
struct NearRanksTask {
  const int32_t* columns = nullptr;  // count x stride, nearest first
  int64_t stride = 0;
  int64_t count = 0;
  const uint32_t* list = nullptr;     // the rows
  const uint32_t* own = nullptr;      // each row's cell
  const uint32_t* numbers = nullptr;  // cells x near
  int64_t near = 0;
  uint32_t* ranks = nullptr;  // rows x probes
  int64_t probes = 0;
};
void launch_put_near_ranks(const NearRanksTask& task, cudaStream_t stream);

// rows x count numbers, each row's ascending; no more than kMostSorted.
inline constexpr int64_t kMostSorted = 1024;
void launch_sort_numbers(const int64_t* ids, int64_t rows, int64_t count, uint32_t* out, cudaStream_t stream);

// How many probes are likely to reach a recall: of some control rows and their true neighbours, which are known before any
// cell is probed, it is looked up in which probe of either the other's cell comes. A hint, which changes nothing that comes
// out: ranks are made once, and not again when they turn out too few. Cost: a search of some thousand rows among the cells'
// centres.

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
