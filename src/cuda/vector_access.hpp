// Reads and writes several values at a time, as the vectors that one instruction moves: float4, uint2, ...
//
// `values` must be aligned to sizeof(V) bytes; callers ensure it. On the host, tests of device cores use this.
#pragma once

#include "core/host_device.hpp"

#include <cstdint>
#include <type_traits>

namespace kith {

// Whether `values` are aligned to `bytes`.
KITH_HOST_DEVICE inline bool is_aligned(const void* values, int64_t bytes) {
  return reinterpret_cast<uintptr_t>(values) % static_cast<uintptr_t>(bytes) == 0;
}

// Memory as an array of vectors, for instructions with a cache hint (__ldcs(vectors<uint2>(code) + i)).
template <typename V, typename T>
KITH_HOST_DEVICE V* vectors(T* values) {
  static_assert(std::is_trivially_copyable_v<V> && std::is_trivially_copyable_v<T>);
  return reinterpret_cast<V*>(values);
}
template <typename V, typename T>
KITH_HOST_DEVICE const V* vectors(const T* values) {
  static_assert(std::is_trivially_copyable_v<V> && std::is_trivially_copyable_v<T>);
  return reinterpret_cast<const V*>(values);
}

template <typename V, typename T>
KITH_HOST_DEVICE V load_vector(const T* values) {
  return *vectors<V>(values);
}

template <typename T, typename V>
KITH_HOST_DEVICE void store_vector(T* values, const V& vector) {
  *vectors<V>(values) = vector;
}

}  // namespace kith
