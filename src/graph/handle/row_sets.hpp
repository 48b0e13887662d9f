// Disjoint sets of rows, joined by any number of threads at once (lock-free union-find).
//
// Each row points to a smaller row of its set, the smallest to itself. Joining two sets makes the larger of their
// smallest rows point to the other, and retries after a lost race. The result does not depend on the order of joins.
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

  // The smallest row of the set, given the joins so far.
  uint32_t find(uint32_t row) const {
    for (;;) {
      const uint32_t above = load(row);
      const uint32_t further = load(above);
      if (above == further) return above;
      uint32_t expected = above;  // path halving; after a lost race another thread has done it
      shared(row).compare_exchange_weak(expected, further, std::memory_order_relaxed);
      row = further;
    }
  }

  // Returns false if they were already joined.
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

  // Call after all joins.
  RowLabels labels(const Resources& resources) const {
    RowLabels result;
    result.rows = parent_.size();
    result.labels = HostBuffer(array_bytes<int64_t>(result.rows), "the rows' sets", resources);
    if (counts_only(resources)) return result;
    auto* const labels = result.labels.as<int64_t>();
    for (int64_t row = 0; row < result.rows; ++row) {  // the smallest row of a set comes first
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
