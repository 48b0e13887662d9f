// How arrays follow each other in a block of host memory that someone else owns, for instance a thread's scratch: typed
// slots, close together unless they are told where to begin. cuda/workspace_layout.hpp does the same for device memory.
#pragma once

#include "core/divide.hpp"
#include "core/slot.hpp"

#include <cstdint>

namespace kith {

struct ScratchLayout {
  int64_t bytes = 0;

  // The next `count` values, which begin on a multiple of `alignment` bytes.
  template <typename T>
  constexpr Slot<T> take(int64_t count, int64_t alignment = alignof(T)) {
    const int64_t offset = round_up(bytes, alignment);
    bytes = offset + count * static_cast<int64_t>(sizeof(T));
    return {offset, count};
  }
};

}  // namespace kith
