// How many rows a command reads at a time when it streams a file.
#pragma once

#include <kith/resources.hpp>

#include <algorithm>
#include <cstdint>

namespace kith::cli {

// Larger pieces are not faster. Under a tight limit, half of the free memory leaves room for the buffers of files.
inline constexpr int64_t kPieceBytes = int64_t{16} << 20;

// The bytes of a row with `count` ids, as readers of ids return them.
inline int64_t bytes_of_ids(int64_t count) { return count * static_cast<int64_t>(sizeof(int64_t)); }

// At least one row; if even that does not fit, its allocation fails with the bytes needed.
inline int64_t rows_per_piece(int64_t rows, int64_t bytes_per_row, const Resources& resources) {
  const int64_t bytes = std::min(kPieceBytes, resources.host_memory_left() / 2);
  return std::clamp<int64_t>(bytes / std::max<int64_t>(bytes_per_row, 1), 1, std::max<int64_t>(rows, 1));
}

}  // namespace kith::cli
