// A typed place in a block of memory whose layout is known before the block exists: an array of `count` values of type T
// that begins `offset` bytes from the block's start. Layouts (cuda/workspace_layout.hpp) hand slots out; in() is the one
// place where bytes become values. Works for device memory, shared memory of a kernel, and host memory alike.
#pragma once

#include "core/host_device.hpp"

#include <cstddef>
#include <cstdint>

namespace kith {

template <typename T>
struct Slot {
  int64_t offset = 0;
  int64_t count = 0;

  constexpr int64_t bytes() const { return count * static_cast<int64_t>(sizeof(T)); }

  KITH_HOST_DEVICE T* in(std::byte* block) const { return reinterpret_cast<T*>(block + offset); }
  KITH_HOST_DEVICE const T* in(const std::byte* block) const { return reinterpret_cast<const T*>(block + offset); }
};

}  // namespace kith
