// How squared distances to few centres are screened in f32, and when that is certain.
//
// The sum of (x - c)^2 in f32 has no cancellation: every term is at least 0, each has been rounded twice, and each is
// added once, in any order. So it is within (cols + 2) roundings of the true sum, relatively, and so is the canonical
// key within one. Where the second smallest sum is above the smallest by more than a few times that, the centre of the
// smallest is the nearest by canonical keys too, and no other has an equal one. Squares below the normal numbers
// are off by absolute amounts, up to 2^-150 for each column. An infinite or missing sum is never certain.
#pragma once

#include "core/host_device.hpp"

#include <cstdint>
#include <initializer_list>

namespace kith {

// Limits of columns, whose rows are in registers, and of centres, which are in shared memory.
inline constexpr int64_t kFewCentreCols = 64;
inline constexpr int64_t kFewCentres = 256;
inline constexpr int64_t kFewCentreValues = 4096;
// Most centres of one column: products of halves cannot tell some hundred of them apart there.
inline constexpr int64_t kFewCentresOfOneColumn = 12288;

// Columns as they are stored with zeros after the last: one kernel for each number.
constexpr int64_t few_centre_width(int64_t cols) {
  for (const int64_t width : {1, 4, 8, 16, 24, 32, 48}) {
    if (cols <= width) return width;
  }
  return 64;
}

// Whether every pair is compared directly; else products on the matrix units leave some.
constexpr bool suits_few_centres(int64_t centres, int64_t cols) {
  if (cols == 1) return centres <= kFewCentresOfOneColumn;
  return cols <= kFewCentreCols && centres <= kFewCentres && centres * few_centre_width(cols) <= kFewCentreValues;
}

// The same for so few centres that rows of more columns are read once, where sums are still certain of most.
inline constexpr int64_t kWideFewCentres = 8;
constexpr bool suits_wide_few_centres(int64_t centres, int64_t cols) {
  constexpr int64_t kMostCols = 16384;
  return centres <= kWideFewCentres && cols > kFewCentreCols && cols <= kMostCols;
}

// The same for more centres of any width, whose sums with 32 rows shared memory holds, where there is little to do:
// then one kernel takes less time than those that products need.
inline constexpr int64_t kTiledCentres = 512;
constexpr bool suits_tiled_centres(int64_t rows, int64_t centres, int64_t cols) {
  constexpr int64_t kMostSteps = int64_t{1} << 28;
  constexpr int64_t kMostCols = 16384;
  return centres <= kTiledCentres && cols <= kMostCols && rows <= kMostSteps / (centres * cols);
}

// How a GPU finds the nearest centre of every row: forms that compare all pairs in one kernel, then the others. Where
// they suit, products take up to 4.4 times as long as two_rows and 2.9 times as long as tiles
// (bench/results/h200/assign_forms.jsonl).
enum class AssignForm : uint8_t {
  registers,  // a row in a thread's registers, the centres in shared memory: suits_few_centres
  two_rows,   // a warp for two rows: suits_wide_few_centres
  tiles,      // the sums of 32 rows with all centres in shared memory: suits_tiled_centres
  pairs,      // the canonical keys of all pairs, where there is so little to do that products take longer
  products,   // the matrix units leave candidates
  exact       // every row goes to exact search
};

// Products mark centres about as near for rows that have many, where there are no more centres than this: then no row
// goes to exact search.
inline constexpr int64_t kMostMarkedCentres = 256;

// Sums above this are of no centre that could be the nearest, where `least` is the smallest sum.
KITH_HOST_DEVICE constexpr float few_centre_limit(float least, int64_t cols) {
  constexpr float kRounding = 0x1p-24f;
  constexpr float kOfSmallest = 0x1p-147f;
  return least * (1.0f + 4.0f * static_cast<float>(cols + 8) * kRounding) + static_cast<float>(cols + 64) * kOfSmallest;
}

}  // namespace kith
