// The parts of a walk on a GPU. A benchmark that times each (bench/walk_parts_cuda_bench.cu) defines the macro below,
// which stands at the end of every part; elsewhere it is empty.
#pragma once

namespace kith {

enum class WalkPart : int {
  code,           // computes the query's code and clears the table of seen places
  cell_keys,      // computes the keys of all cells
  nearest_cells,  // selects the nearest cells
  entries,        // compares the entries of these cells
  begin,          // puts the best entries into the beam
  choose,         // chooses the places that a step opens
  collect,        // collects the neighbours that are near enough for the beam
  enter,          // inserts them
  ask,            // asks for the next lists to compare
  wait,           // waits for the other warps
  lists,          // the first warp's comparisons
  write,          // writes the results
};
inline constexpr int kWalkParts = 12;

}  // namespace kith

#if !defined(KITH_WALK_PART_ENDS)
#define KITH_WALK_PART_ENDS(part)
#endif
