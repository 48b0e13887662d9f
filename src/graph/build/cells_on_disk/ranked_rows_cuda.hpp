// Rows on their way to a GPU that ranks their cells: as they are stored, unless cells see others than these.
#pragma once

#include "cuda/pinned_bytes.hpp"
#include "graph/build/cells/cell_space.hpp"
#include "graph/build/cells_on_disk/source_ranks.hpp"

#include <cstdint>

namespace kith {

inline CellSpace space_of(const CellRanking& task) {
  return {MatrixView(nullptr, task.dtype, {0, task.cols, task.cols}), task.metric, 0.0};
}
// The bytes of a row on the device.
inline int64_t seen_bytes(const CellRanking& task) {
  return space_of(task).is_identity() ? task.cols * size_of(task.dtype) : 4 * cell_cols(task.cols, task.metric);
}
inline bool goes_through_pinned(const CellRanking& task, int64_t rows) { return rows * seen_bytes(task) >= kPinnedBytes; }

}  // namespace kith
