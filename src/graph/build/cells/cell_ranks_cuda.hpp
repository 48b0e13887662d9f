// Rows and cells on a GPU: ranks from what a search found, where rows lie cell by cell, and the rows that probe each cell.
//
// Rows of a cell, and those that probe it, come in no order: what is made of them does not depend on one.
#pragma once

#include "graph/build/cells/probe_forecast.hpp"

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
  uint32_t* ranks = nullptr;  // rows x probes; null: only own cells are wanted
  int64_t first_probe = 0;    // the own cell is probe 0
  int64_t probes = 0;
};
void launch_put_ranks(const RanksTask& task, cudaStream_t stream);

// Columns [first, end) of rows x stride cells.
struct CellColumns {
  const uint32_t* cells = nullptr;
  int64_t stride = 1;
  int64_t rows = 0;
  int64_t first = 0;
  int64_t end = 1;
  int64_t first_row = 0;  // the number of the first of these rows
};
// Adds up how many rows name each cell.
void launch_count_cells(const CellColumns& columns, int64_t cells, uint32_t* counts, cudaStream_t stream);

// Every row to the next free place of its cell. `next`, one for each cell, holds the first and is raised.
// `places`: the row at each place, kNoPlace before. `row_places`: each row's place, by its number, if it is not null.
void launch_put_places(const CellColumns& columns, int64_t cells, uint32_t* next, uint32_t* places,
                       uint32_t* row_places, cudaStream_t stream);
// Every row's place to the next free slot of each cell that it names, unless that begins with kNoSlots. `slots` hold
// kNoPlace before.
void launch_put_slots(const CellColumns& columns, int64_t cells, const uint32_t* row_places, uint32_t* next,
                      uint32_t* slots, cudaStream_t stream);

// The same where columns were selected among the cells near each row's own.
struct NearRanksTask {
  const int32_t* columns = nullptr;  // count x stride, nearest first
  int64_t stride = 0;
  int64_t count = 0;
  const uint32_t* list = nullptr;     // the rows; null: 0, 1, ...
  const uint32_t* own = nullptr;      // each row's cell
  const uint32_t* tables = nullptr;   // each row's line of the numbers; null: its cell
  const uint32_t* numbers = nullptr;  // cells x near
  int64_t near = 0;
  uint32_t* ranks = nullptr;  // rows x probes
  int64_t first_probe = 0;
  int64_t probes = 0;
  int64_t first_row = 0;  // the row that `ranks` begin with
};
void launch_put_near_ranks(const NearRanksTask& task, cudaStream_t stream);

// rows x count numbers, each row's ascending; no more than kMostSorted.
inline constexpr int64_t kMostSorted = 1024;
void launch_sort_numbers(const int64_t* ids, int64_t rows, int64_t count, uint32_t* out, cudaStream_t stream);

// Questions of probe_forecast.hpp about some rows, by the ordered keys of these and all cells.
struct PlacesTask {
  const uint32_t* keys = nullptr;  // rows x cells
  int64_t cells = 0;
  uint32_t first_row = 0;         // the number of the first of these
  const uint32_t* own = nullptr;  // the cell of each
  const PlaceQuestion* questions = nullptr;
  int64_t count = 0;  // of questions
  uint32_t* places = nullptr;
};
void launch_find_places(const PlacesTask& task, cudaStream_t stream);

}  // namespace kith
