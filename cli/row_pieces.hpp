// How many rows a command that streams a file takes at a time.
#pragma once

#include <kith/resources.hpp>

#include "core/memory_budget.hpp"

#include <algorithm>
#include <cstdint>

namespace kith::cli {

// Larger pieces are not faster; half of what a tight limit has left leaves room for what files buffer.
inline constexpr int64_t kPieceBytes = int64_t{16} << 20;

// At least one row: where that does not fit, allocating it fails with the bytes it needs.
inline int64_t rows_per_piece(int64_t rows, int64_t bytes_per_row, const Resources& resources) {
  const int64_t bytes = std::min(kPieceBytes, resources.host_memory()->available() / 2);
  return std::clamp<int64_t>(bytes / std::max<int64_t>(bytes_per_row, 1), 1, std::max<int64_t>(rows, 1));
}

}  // namespace kith::cli
