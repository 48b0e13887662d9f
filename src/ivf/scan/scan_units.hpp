// In which order matrix units see the columns of a vector, in both operands of the scan of lists.
//
// Columns are taken in units of four neighbours, a step of 16 is four units, and lane 4 g + t decodes the unit of its
// quarter t of every step. Which unit that is depends on how the code is read best:
//   side by side   unit 4 s + t at step s: the quarters of a step are 16 neighbouring columns
//   paired         units 2 t and 2 t + 1 of eight, at an even step and the next: a lane reads eight columns at once
//   apart          unit 8 t + s: a lane's units are neighbours, and so are their bytes in a code of one or two bytes a
//                  unit, which it then reads at once
#pragma once

#include "core/host_device.hpp"
#include "kernels/codes/code_format.hpp"

#include <cstddef>
#include <cstdint>

namespace kith {

inline constexpr int kNarrowSteps = 8;  // of 16 columns: a tile of vectors stays in registers

// Codewords of a multiple of four columns are looked up by the unit, those of two by halves of it: 256 x 16 columns a
// step, as halves, so that the quarters of a step never meet in one bank of shared memory.
inline constexpr int64_t kTableStepBytes = 256 * 32;

inline int64_t table_steps(const CodeFormat& format) { return (format.cols + 15) / 16; }

inline bool has_half_table(const CodeFormat& format) {
  return format.copies_codewords() && format.bits == 8 && (format.part_cols() % 4 == 0 || format.part_cols() == 2) &&
         format.cols <= kNarrowSteps * 16;
}

enum class UnitOrder : uint8_t { side_by_side, paired, apart };

// Of codes that are looked up in tables, and of all that have no order of their own.
KITH_HOST_DEVICE inline UnitOrder unit_order(const CodeFormat& format) {
  const bool apart = format.copies_codewords() && format.bits == 8 && format.cols == kNarrowSteps * 16 &&
                     (format.part_cols() == 4 || format.part_cols() == 2);
  return apart ? UnitOrder::apart : UnitOrder::side_by_side;
}

KITH_HOST_DEVICE inline int unit_of(UnitOrder order, int step, int quarter) {
  switch (order) {
    case UnitOrder::apart: return kNarrowSteps * quarter + step;
    case UnitOrder::paired: return step / 2 * 8 + 2 * quarter + step % 2;
    default: return 4 * step + quarter;
  }
}
KITH_HOST_DEVICE inline int step_of_unit(UnitOrder order, int unit) {
  switch (order) {
    case UnitOrder::apart: return unit % kNarrowSteps;
    case UnitOrder::paired: return unit / 8 * 2 + unit % 2;
    default: return unit / 4;
  }
}
KITH_HOST_DEVICE inline int quarter_of_unit(UnitOrder order, int unit) {
  switch (order) {
    case UnitOrder::apart: return unit / kNarrowSteps;
    case UnitOrder::paired: return unit % 8 / 2;
    default: return unit % 4;
  }
}

}  // namespace kith
