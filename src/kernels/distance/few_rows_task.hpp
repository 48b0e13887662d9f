// What the code of nearest_of_few_cpu.cpp, compiled once for each instruction set, works with.
#pragma once

#include "kernels/distance/canonical.hpp"

#include <cstdint>

namespace kith {

inline constexpr int64_t kMostFewRows = 512;    // more are better packed (kernels/panels)
inline constexpr int64_t kFewRowsTile = 16;     // of the few, which lie side by side for each column
inline constexpr int64_t kFewRowsTogether = 8;  // rows that are compared at a time, at most

inline constexpr int64_t kShortColumns = 16;  // up to so many, f32 rows are compared several in a vector

inline constexpr int64_t kHandful = 7;  // up to so many are compared with vectors along the columns

struct FewRowsTask {
  KeyKind kind = KeyKind::squared_l2;
  int64_t cols = 0;
  int64_t padded = 0;  // columns
  int64_t count = 0;   // of the few
  int64_t width = 0;   // the same, padded
  const float* origin = nullptr;
  const float* table = nullptr;    // for each tile cols x kFewRowsTile
  const float* terms = nullptr;    // width
  const float* columns = nullptr;  // of short rows: cols x width, as they are
  const float* lines = nullptr;    // of a handful: kHandful x padded, the values of the table
  float relative = 0;              // the error of a direct distance, relative to it,
  float underflow = 0;             // and beside that
  float largest = 1e36f;           // beyond it nothing is sure
  const double* wide = nullptr;    // count x padded
  // How far a value can be from the truth, for a row of a norm: constant + norm (linear + norm quadratic).
  float constant = 0;
  float linear = 0;
  float quadratic = 0;
};

}  // namespace kith
