// Four neighbouring values of a row at a time, in one load where the row allows it.
#pragma once

#include "cuda/device_core.hpp"
#include "cuda/vector_access.hpp"

#include <cstdint>

namespace kith {

template <typename T>
struct alignas(4 * sizeof(T)) Four {
  T values[4];
};

// Columns first .. first + 3; what lies past the last one is zero.
template <typename T>
KITH_DEVICE_INLINE Four<T> load_four(const T* row, int64_t first, int64_t cols, bool aligned) {
  if (aligned && first + 4 <= cols) return load_vector<Four<T>>(row + first);
  Four<T> four;
  KITH_UNROLL
  for (int i = 0; i < 4; ++i) four.values[i] = first + i < cols ? row[first + i] : T{};
  return four;
}

// Whether every row of such a matrix begins where a Four may lie.
template <typename T>
KITH_DEVICE_INLINE bool rows_aligned(const T* data, int64_t stride) {
  return is_aligned(data, 4 * sizeof(T)) && stride % 4 == 0;
}

}  // namespace kith
