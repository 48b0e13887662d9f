// The rows that a range search has found for a batch of queries, before anyone knew how many there would be.
//
// Each thread fills segments of its own; collect() counts, puts every query's rows together and sorts them.
// Memory: 16 bytes for each row found, and 8 more while it is collected.
#pragma once

#include <kith/host_buffer.hpp>

#include "core/parallel_for.hpp"

#include <cstdint>
#include <vector>

namespace kith {

// Packed neighbours (core/ordered_key.hpp) of the batch's queries, each query's sorted.
struct CollectedHits {
  std::vector<int64_t> offsets;  // queries + 1
  HostBuffer neighbors;

  int64_t queries() const { return static_cast<int64_t>(offsets.size()) - 1; }
  int64_t size() const { return offsets.back(); }
};

class RangeHits {
 public:
  explicit RangeHits(const Resources& resources);

  // For one query of the batch; no two threads use the same slot at once.
  void add(int slot, int64_t query, uint64_t neighbor) {
    Segments& segments = slots_[static_cast<size_t>(slot)];
    if (segments.used == segments.capacity) grow(&segments);
    segments.end[segments.used++] = {neighbor, static_cast<uint32_t>(query)};
  }

  // What was added for `queries` queries; empties the store.
  CollectedHits collect(int64_t queries, ProgressMeter& meter);

 private:
  struct Hit {
    uint64_t neighbor;
    uint32_t query;
  };
  struct Segments {
    std::vector<HostBuffer> full;
    HostBuffer last;
    Hit* end = nullptr;  // of `last`
    int64_t used = 0;
    int64_t capacity = 0;
  };
  void grow(Segments* segments) const;
  template <typename Use>
  static void for_each(const Segments& segments, const Use& use);

  Resources resources_;
  std::vector<Segments> slots_;
};

}  // namespace kith
