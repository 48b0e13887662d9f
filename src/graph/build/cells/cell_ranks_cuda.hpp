// Rows and cells on a GPU: probes from search results, the places of rows cell by cell, and the rows that probe each
// cell.
//
// The rows of a cell, and those that probe it, are unordered: no result depends on their order.
#pragma once

#include "graph/build/cells/probe_forecast.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

inline constexpr uint32_t kNoPlace = 0xFFFFFFFFu;  // the place of no row

struct RanksTask {
  const int64_t* found = nullptr;     // count x stride: cells, nearest first
  int64_t stride = 0;
  int64_t count = 0;                  // rows
  int64_t first = 0;                  // number of the first one
  uint32_t* own = nullptr;    // each row's cell
  bool sets_own = false;      // writes it: the nearest cell
  uint32_t* ranks = nullptr;  // rows x probes; null: only own cells are written
  int64_t first_probe = 0;    // the own cell is probe 0
  int64_t probes = 0;
};
void launch_put_ranks(const RanksTask& task, cudaStream_t stream);

// Columns first .. end - 1 of a rows x stride table of cells.
struct CellColumns {
  const uint32_t* cells = nullptr;
  int64_t stride = 1;
  int64_t rows = 0;
  int64_t first = 0;
  int64_t end = 1;
  int64_t first_row = 0;  // number of the first of these rows
};
// Counts how many rows name each cell.
void launch_count_cells(const CellColumns& columns, int64_t cells, uint32_t* counts, cudaStream_t stream);

// Puts every row at the next free place of its cell. `next` holds each cell's first free place and is incremented.
// `places`: the row at each place, initially kNoPlace. `row_places`, unless null: each row's place, by its number.
void launch_put_places(const CellColumns& columns, int64_t cells, uint32_t* next, uint32_t* places,
                       uint32_t* row_places, cudaStream_t stream);
// Puts every row's place into the next free slot of each cell that it names, unless that cell's first slot is kNoSlots.
// `slots` are initially kNoPlace.
void launch_put_slots(const CellColumns& columns, int64_t cells, const uint32_t* row_places, uint32_t* next,
                      uint32_t* slots, cudaStream_t stream);

// Probes from columns that were selected among the cells near each row's own cell.
struct NearRanksTask {
  const int32_t* columns = nullptr;  // count x stride, nearest first
  int64_t stride = 0;
  int64_t count = 0;
  const uint32_t* list = nullptr;     // the rows; null: 0, 1, ...
  const uint32_t* own = nullptr;      // each row's cell
  const uint32_t* tables = nullptr;   // each row's line in `numbers`; null: its cell
  const uint32_t* numbers = nullptr;  // cells x near
  int64_t near = 0;
  uint32_t* ranks = nullptr;  // rows x probes
  int64_t first_probe = 0;
  int64_t probes = 0;
  int64_t first_row = 0;  // the first row of `ranks`
};
void launch_put_near_ranks(const NearRanksTask& task, cudaStream_t stream);

// Sorts rows x count numbers, each row ascending; `count` is at most kMostSorted.
inline constexpr int64_t kMostSorted = 1024;
void launch_sort_numbers(const int64_t* ids, int64_t rows, int64_t count, uint32_t* out, cudaStream_t stream);

// Answers questions of probe_forecast.hpp about a range of rows, from their ordered keys to all cells.
struct PlacesTask {
  const uint32_t* keys = nullptr;  // rows x cells
  int64_t cells = 0;
  uint32_t first_row = 0;         // number of the first of these
  const uint32_t* own = nullptr;  // the cell of each
  const PlaceQuestion* questions = nullptr;
  int64_t count = 0;  // number of questions
  uint32_t* places = nullptr;
};
void launch_find_places(const PlacesTask& task, cudaStream_t stream);

}  // namespace kith
