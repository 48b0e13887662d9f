// Work on blocks of rows, or of parts, on all threads. Blocks lie at the same places whatever the threads.
#pragma once

#include "core/divide.hpp"
#include "core/parallel_for.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace kith {

inline constexpr int64_t kRowBlock = 4096;

// body(first, end) for each block of [0, count).
template <typename Body>
void for_row_blocks(std::string_view stage, int64_t count, const Resources& resources, const Body& body) {
  ProgressMeter meter(stage, count, resources);
  parallel_for(divide_up(count, kRowBlock), meter, resources, [&](int64_t block, int) {
    const int64_t first = block * kRowBlock;
    const int64_t end = std::min(first + kRowBlock, count);
    body(first, end);
    meter.add(end - first);
  });
  meter.finish();
}

}  // namespace kith
