// The places whose keys a walk has computed, as far as it remembers: a table with one slot for each of some hash
// values.
//
// It may forget, where two places share a slot: then a key is computed twice, and the beam refuses the place the second
// time. So its size changes time alone. A bit for every place would never forget, but is cleared or brought into the
// cache for each query; this fits beside the beam in the first cache.
//
// Memory: 4 bytes a slot.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace kith {

class SeenPlaces {
 public:
  // Slots for a walk with so wide a beam and such lists: a power of two, about four for each place that it sees.
  static int64_t slots_for(int64_t beam, int64_t degree) {
    const int64_t likely = std::clamp<int64_t>(beam * degree * 2, kFewestSlots, kMostSlots);
    return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(likely)));
  }

  SeenPlaces(uint32_t* memory, int64_t slots)
      : slots_(memory), shift_(32 - std::countr_zero(static_cast<uint64_t>(slots))), count_(slots) {
    clear();
  }

  void clear() { std::fill(slots_, slots_ + count_, kNothing); }

  // Whether the place was not there; now it is. Nobody can foresee which: there is no branch.
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
