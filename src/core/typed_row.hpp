// A row of a view whose dtype the caller knows, as values instead of bytes.
#pragma once

#include <kith/view.hpp>

#include <cassert>
#include <cstdint>

namespace kith {

template <typename T>
const T* typed_row(const MatrixView& view, int64_t i) {
  assert(size_of(view.dtype()) == static_cast<int64_t>(sizeof(T)));
  return reinterpret_cast<const T*>(view.row(i));
}

template <typename T>
T* typed_row(const MutableMatrixView& view, int64_t i) {
  assert(size_of(view.dtype()) == static_cast<int64_t>(sizeof(T)));
  return reinterpret_cast<T*>(view.row(i));
}

}  // namespace kith
