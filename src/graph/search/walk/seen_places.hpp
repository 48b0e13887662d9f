// The places whose keys a walk has computed: a lossy hash table with one place per slot.
//
// When two places share a slot the older one is forgotten. Its key may then be computed again, and the beam rejects the
// duplicate, so the table's size affects time only. A bitmap of all places would never forget, but would have to be
// cleared, or loaded into the cache, for each query; this table fits into the first-level cache together with the
// beam.
//
// Memory: 4 bytes per slot.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace kith {

class SeenPlaces {
 public:
  // The number of slots for a beam and a degree: a power of two, about four per place that a walk sees.
  static int64_t slots_for(int64_t beam, int64_t degree) {
    const int64_t likely = std::clamp<int64_t>(beam * degree * 2, kFewestSlots, kMostSlots);
    return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(likely)));
  }

  // The memory is to be cleared before the first add().
  SeenPlaces(uint32_t* memory, int64_t slots)
      : slots_(memory), shift_(32 - std::countr_zero(static_cast<uint64_t>(slots))), count_(slots) {}

  void clear() { std::fill(slots_, slots_ + count_, kNothing); }

  // Inserts the place; returns whether it was missing. Branchless, since the answer is unpredictable.
  bool add(uint32_t place) {
    uint32_t& slot = slots_[static_cast<uint32_t>(place * kGoldenRatio) >> shift_];
    const bool is_new = slot != place;
    slot = place;
    return is_new;
  }

 private:
  static constexpr uint32_t kNothing = 0xFFFFFFFFU;
  static constexpr uint32_t kGoldenRatio = 0x9E3779B1U;
  static constexpr int64_t kFewestSlots = 4096;
  static constexpr int64_t kMostSlots = 1 << 16;

  uint32_t* slots_;
  int shift_;
  int64_t count_;
};

}  // namespace kith
