#include "graph/lists/write_lists.hpp"

#include "core/result_exit.hpp"
#include "graph/lists/row_blocks.hpp"

namespace kith {

void write_lists(const WorkingLists& lists, Metric metric, const NeighborsView& out, const Resources& resources) {
  const ResultExit exit(metric);
  const Resources quiet = resources.with_progress({});
  for_row_blocks("write", lists.rows(), quiet, [&](int64_t first, int64_t end) {
    for (int64_t row = first; row < end; ++row) {
      for (int64_t j = 0; j < out.k; ++j) {
        const uint64_t stored = j < lists.length() ? lists.list(row)[j] : kPadding;
        const uint64_t neighbor = stored == kPadding ? kPadding : without_flag(stored);
        out.ids[row * out.k + j] = exit.id(neighbor);
        out.distances[row * out.k + j] = exit.distance(neighbor);
      }
    }
  });
}

}  // namespace kith
