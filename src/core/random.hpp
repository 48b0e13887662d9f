// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
//
// A number is a pure function of (seed, stream, index): any thread of any device can make the i-th one without having
// made those before it, so results do not depend on how work is split.
#pragma once

#include "core/host_device.hpp"

#include <cstdint>

namespace kith {

struct Random4 {
  uint32_t word[4];
};

class CounterRng {
 public:
  KITH_HOST_DEVICE constexpr CounterRng(uint64_t seed, uint64_t stream) : seed_(seed), stream_(stream) {}

  // Four independent words for each index.
  KITH_HOST_DEVICE constexpr Random4 block(uint64_t index) const {
    uint32_t c0 = static_cast<uint32_t>(index);
    uint32_t c1 = static_cast<uint32_t>(index >> 32);
    uint32_t c2 = static_cast<uint32_t>(stream_);
    uint32_t c3 = static_cast<uint32_t>(stream_ >> 32);
    uint32_t k0 = static_cast<uint32_t>(seed_);
    uint32_t k1 = static_cast<uint32_t>(seed_ >> 32);
    for (int round = 0; round < 10; ++round) {
      const uint64_t p0 = static_cast<uint64_t>(0xD2511F53u) * c0;
      const uint64_t p1 = static_cast<uint64_t>(0xCD9E8D57u) * c2;
      const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
      const uint32_t n2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
      c1 = static_cast<uint32_t>(p1);
      c3 = static_cast<uint32_t>(p0);
      c0 = n0;
      c2 = n2;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    return {{c0, c1, c2, c3}};
  }

  KITH_HOST_DEVICE constexpr uint32_t word(uint64_t index) const { return block(index / 4).word[index % 4]; }

  // In [0, 1), 24 bits.
  KITH_HOST_DEVICE constexpr float uniform(uint64_t index) const {
    return static_cast<float>(word(index) >> 8) * 0x1p-24f;
  }

  // In [0, bound), bound > 0. Multiply-shift on 64 bits: the bias is below bound / 2^64.
  KITH_HOST_DEVICE constexpr uint32_t below(uint64_t index, uint32_t bound) const {
    const Random4 r = block(index);
    const uint64_t low = (static_cast<uint64_t>(r.word[1]) * bound) >> 32;
    return static_cast<uint32_t>((static_cast<uint64_t>(r.word[0]) * bound + low) >> 32);
  }

 private:
  uint64_t seed_;
  uint64_t stream_;
};

}  // namespace kith
