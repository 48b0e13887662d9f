// Sorts packed neighbours (core/ordered_key.hpp): many of them digit by digit, which takes a tenth of the time of
// comparing them.
//
// The rows' digits first, of up to 13 bits, unless they ascend already; then those of the keys minus the smallest.
// Cost: a pass for each digit, at most six, and two more; as much memory again.
#pragma once

#include <cstdint>
#include <span>

namespace kith {

// From this many neighbours on a radix sort pays off; fewer are sorted by comparison.
inline constexpr int64_t kFewestToSortByDigits = 1024;

// `scratch` has room for `count` neighbours; if null, the sort is by comparison.
void sort_neighbors(uint64_t* neighbors, int64_t count, uint64_t* scratch);

// Contiguous neighbours: packed ones, or only the keys, not NaN, of consecutive rows.
struct NeighborRun {
  const uint64_t* packed = nullptr;
  const float* keys = nullptr;
  uint32_t first_row = 0;  // row of the first key
  uint32_t count = 0;

  uint64_t at(int64_t i) const;
};

// Sorts the `count` neighbours of all runs; `scratch` as above. Reorders `runs`.
void sort_runs(std::span<NeighborRun> runs, int64_t count, uint64_t* sorted, uint64_t* scratch);

// Writes a run as packed neighbours, in its own order.
void copy_run(const NeighborRun& run, uint64_t* to);

}  // namespace kith
