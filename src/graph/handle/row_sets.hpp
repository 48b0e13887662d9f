// Sets of rows that are joined, by any number of threads at once (union-find without locks).
//
// A row points to a smaller one of its set, the smallest to itself. To join two sets the larger of their smallest rows
// is made to point to the other; who loses a race tries again. So the result does not depend on the order of joins.
#pragma once

#include <kith/row_labels.hpp>

#include "core/host_array.hpp"
#include "core/within_limits.hpp"
#include "rows/row_blocks.hpp"

#include <atomic>
#include <cstdint>
#include <numeric>
#include <utility>

namespace kith {

class RowSets {
 public:
  RowSets(int64_t rows, const Resources& resources) : parent_(rows, "sets of rows", resources) {
    std::iota(parent_.begin(), parent_.end(), 0u);
  }

  // The smallest row of the set, as far as sets are joined.
  uint32_t find(uint32_t row) const {
    for (;;) {
      const uint32_t above = load(row);
      const uint32_t further = load(above);
      if (above == further) return above;
      uint32_t expected = above;  // the way is halved; who loses leaves that to another
      shared(row).compare_exchange_weak(expected, further, std::memory_order_relaxed);
      row = further;
    }
  }

  // False where they were joined before.
  bool join(uint32_t a, uint32_t b) const {
    for (;;) {
      a = find(a);
      b = find(b);
      if (a == b) return false;
      if (a < b) std::swap(a, b);
      uint32_t expected = a;
      if (shared(a).compare_exchange_weak(expected, b, std::memory_order_relaxed)) return true;
    }
  }

  // Once all are joined.
  RowLabels labels(const Resources& resources) const {
    RowLabels result;
    result.rows = parent_.size();
    result.labels = HostBuffer(array_bytes<int64_t>(result.rows), "the rows' sets", resources);
    if (only_counts(resources)) return result;
    auto* const labels = result.labels.as<int64_t>();
    for (int64_t row = 0; row < result.rows; ++row) {  // the smallest of a set comes first
      const uint32_t first = find(static_cast<uint32_t>(row));
      labels[row] = first == row ? result.sets++ : labels[first];
    }
    return result;
  }

 private:
  std::atomic_ref<uint32_t> shared(uint32_t row) const { return std::atomic_ref<uint32_t>(parent_[row]); }
  uint32_t load(uint32_t row) const { return shared(row).load(std::memory_order_relaxed); }

  HostArray<uint32_t> parent_;
};

}  // namespace kith
