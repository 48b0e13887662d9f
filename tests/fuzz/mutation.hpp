// Random damage to files, the same in every run.
#pragma once

#include "core/random.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kith::fuzz {

// Numbers that are drawn one after the other.
class Draws {
 public:
  explicit Draws(uint64_t stream) : random_(1, stream) {}
  uint32_t below(size_t bound) { return random_.below(next_++, static_cast<uint32_t>(bound)); }

 private:
  CounterRng random_;
  uint64_t next_ = 0;
};

// One change: a bit, a byte, a few bytes of ones or zeros, an address of the file itself, or bytes from elsewhere in
// it.
inline void mutate(std::vector<uint8_t>& bytes, Draws& draws) {
  const size_t at = draws.below(bytes.size());
  const size_t length = std::min<size_t>(1 + draws.below(8), bytes.size() - at);
  const auto place = bytes.begin() + static_cast<std::ptrdiff_t>(at);
  const auto count = static_cast<std::ptrdiff_t>(length);
  switch (draws.below(6)) {
    case 0: *place ^= static_cast<uint8_t>(1 << draws.below(8)); return;
    case 1: *place = static_cast<uint8_t>(draws.below(256)); return;
    case 2: std::fill_n(place, count, uint8_t{0xff}); return;
    case 3: std::fill_n(place, count, uint8_t{0}); return;
    case 4:  // an address of the file itself, for circles
      *place = static_cast<uint8_t>(draws.below(256));
      if (length > 1) place[1] = static_cast<uint8_t>(draws.below(bytes.size()) >> 8);
      return;
    default: {
      const size_t from = draws.below(bytes.size() - length + 1);
      const std::vector<uint8_t> copied(bytes.begin() + static_cast<std::ptrdiff_t>(from),
                                        bytes.begin() + static_cast<std::ptrdiff_t>(from) + count);
      std::copy(copied.begin(), copied.end(), place);
    }
  }
}

}  // namespace kith::fuzz
