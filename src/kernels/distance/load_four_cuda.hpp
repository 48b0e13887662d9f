// Four neighbouring values of a row at a time, in one load where the row allows it. Where the dtype is known at run
// time alone they are fetched early as they are stored, and widened to double when they are needed.
#pragma once

#include "core/half.hpp"
#include "cuda/device_core.hpp"
#include "cuda/vector_access.hpp"
#include "rows/device_rows.hpp"

#include <cstddef>
#include <cstdint>

namespace kith {

template <typename T>
struct alignas(4 * sizeof(T)) Four {
  T values[4];
};

// Columns first .. first + 3; those past the last one are zero.
template <typename T>
KITH_DEVICE_INLINE Four<T> load_four(const T* row, int64_t first, int64_t cols, bool aligned) {
  if (aligned && first + 4 <= cols) return load_vector<Four<T>>(row + first);
  Four<T> four;
  KITH_UNROLL
  for (int i = 0; i < 4; ++i) four.values[i] = first + i < cols ? row[first + i] : T{};
  return four;
}

// Whether every row of such a matrix is aligned for a Four.
template <typename T>
KITH_DEVICE_INLINE bool rows_aligned(const T* data, int64_t stride) {
  return is_aligned(data, 4 * sizeof(T)) && stride % 4 == 0;
}

// --- dtype known only at run time

KITH_DEVICE_INLINE int stored_bytes(DType dtype) {
  return dtype == DType::f32 ? 4 : dtype == DType::f16 || dtype == DType::bf16 ? 2 : 1;
}

struct StoredFour {
  uint32_t bits[4];
};

KITH_DEVICE_INLINE bool fours_aligned(const DeviceRowsView& rows) {
  return is_aligned(rows.data, 4 * stored_bytes(rows.dtype)) && rows.stride % 4 == 0;
}

template <typename T>
KITH_DEVICE_INLINE StoredFour widen_bits(const Four<T>& four) {
  return {{four.values[0], four.values[1], four.values[2], four.values[3]}};
}

KITH_DEVICE_INLINE StoredFour fetch_four(const void* row, DType dtype, int64_t first, int64_t cols, bool aligned) {
  switch (dtype) {
    case DType::f32: return widen_bits(load_four(static_cast<const uint32_t*>(row), first, cols, aligned));
    case DType::f16:
    case DType::bf16: return widen_bits(load_four(static_cast<const uint16_t*>(row), first, cols, aligned));
    default: return widen_bits(load_four(static_cast<const uint8_t*>(row), first, cols, aligned));
  }
}

KITH_DEVICE_INLINE int byte_value(uint32_t bits, DType dtype) {
  return dtype == DType::u8 ? static_cast<int>(bits) : static_cast<int>(static_cast<int8_t>(bits));
}

KITH_DEVICE_INLINE double widened(uint32_t bits, DType dtype) {
  switch (dtype) {
    case DType::f32: return static_cast<double>(float_of_bits(bits));
    case DType::f16: return static_cast<double>(Half{static_cast<uint16_t>(bits)});
    case DType::bf16: return static_cast<double>(float_of_bits(bits << 16));
    default: return static_cast<double>(byte_value(bits, dtype));
  }
}

// Branches on the dtype once per four values.
KITH_DEVICE_INLINE void widen_four(const StoredFour& four, DType dtype, double (&values)[4]) {
  if (dtype == DType::f32) {
    KITH_UNROLL
    for (int i = 0; i < 4; ++i) values[i] = widened(four.bits[i], DType::f32);
  } else if (dtype == DType::f16) {
    KITH_UNROLL
    for (int i = 0; i < 4; ++i) values[i] = widened(four.bits[i], DType::f16);
  } else if (dtype == DType::bf16) {
    KITH_UNROLL
    for (int i = 0; i < 4; ++i) values[i] = widened(four.bits[i], DType::bf16);
  } else {
    KITH_UNROLL
    for (int i = 0; i < 4; ++i) values[i] = static_cast<double>(byte_value(four.bits[i], dtype));
  }
}

// Loads a single value.
KITH_DEVICE_INLINE double stored_value(const void* row, DType dtype, int64_t column) {
  switch (dtype) {
    case DType::f32: return widened(static_cast<const uint32_t*>(row)[column], dtype);
    case DType::f16:
    case DType::bf16: return widened(static_cast<const uint16_t*>(row)[column], dtype);
    default: return widened(static_cast<const uint8_t*>(row)[column], dtype);
  }
}

// A row of a dtype known at run time; null past the last one.
KITH_DEVICE_INLINE const std::byte* row_bytes_at(const DeviceRowsView& rows, int64_t i) {
  if (i >= rows.count) return nullptr;
  return static_cast<const std::byte*>(rows.data) + rows.stored(i) * rows.stride * stored_bytes(rows.dtype);
}

}  // namespace kith
