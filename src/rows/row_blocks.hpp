// Runs work on blocks of rows, or of other items, on all threads. Blocks do not depend on the number of threads.
#pragma once

#include "core/divide.hpp"
#include "core/parallel_for.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace kith {

inline constexpr int64_t kRowBlock = 4096;

// body(first, end), or body(first, end, slot), for each block of `size` of [0, count).
template <typename Body>
void for_row_blocks(std::string_view stage, int64_t count, const Resources& resources, const Body& body,
                    int64_t size = kRowBlock) {
  ProgressMeter meter(stage, count, resources);
  parallel_for(divide_up(count, size), meter, resources, [&](int64_t block, int slot) {
    const int64_t first = block * size;
    const int64_t end = std::min(first + size, count);
    if constexpr (std::is_invocable_v<Body, int64_t, int64_t, int>) {
      body(first, end, slot);
    } else {
      body(first, end);
    }
    meter.add(end - first);
  });
  meter.finish();
}

}  // namespace kith
