// The parts of a walk on a GPU, for a benchmark that times each (bench/walk_parts_cuda_bench.cu) and defines what
// happens at the end of one. Elsewhere nothing happens.
#pragma once

namespace kith {

enum class WalkPart : int {
  code,           // the query's code; the table of seen places is empty
  cell_keys,      // of all cells
  nearest_cells,  // of these
  entries,        // of the nearest cells are compared
  begin,          // they enter the beam
  choose,         // what a step opens
  collect,        // what enters the beam of the lists that are opened
  enter,          // it does
  ask,            // for the lists that are compared next
  wait,           // for other warps
  lists,          // are compared, by the first warp
  write,
};
inline constexpr int kWalkParts = 12;

}  // namespace kith

#if !defined(KITH_WALK_PART_ENDS)
#define KITH_WALK_PART_ENDS(part)
#endif
