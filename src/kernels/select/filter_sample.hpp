// The sample from which the filter path of selection estimates its threshold.
//
// A slice of n values is cut into strata; from each come 8 neighbouring values (one memory sector) at a place drawn by
// a hash, so that sorted, reversed and periodic rows are sampled as well as random ones. If the wanted k values are x
// of the sample on average, the cut is made between ranks r and 5 r / 4 of the sample with r = x + 4.5 sqrt(x) + 10:
// the number of values that pass is then below k with a probability of about 1e-5, and for a sorted row, of which the
// first strata hold all that is wanted, r is over one stratum's share more than needed.
#pragma once

#include "core/host_device.hpp"
#include "kernels/select/key_cut.hpp"

#include <cmath>
#include <cstdint>

namespace kith {

inline constexpr uint32_t kSampleRun = 8;

// Start of the sample run in stratum `stratum` of `strata`; n >= strata * kSampleRun. Runs do not overlap.
KITH_HOST_DEVICE constexpr uint32_t sample_start(uint32_t stratum, uint32_t strata, uint32_t n) {
  const uint32_t begin = static_cast<uint32_t>(static_cast<uint64_t>(stratum) * n / strata);
  if (n < 2 * kSampleRun * strata) return begin;
  const uint32_t end = static_cast<uint32_t>((static_cast<uint64_t>(stratum) + 1) * n / strata);
  const uint32_t first = (begin + kSampleRun - 1) / kSampleRun * kSampleRun;
  const uint32_t places = (end - first) / kSampleRun;
  uint32_t hash = (stratum + 1) * 0x9E3779B1u;
  hash = (hash ^ hash >> 15) * 0x85EBCA77u;
  hash ^= hash >> 13;
  return first + kSampleRun * static_cast<uint32_t>(static_cast<uint64_t>(hash) * places >> 32);
}

// The number of sample values that the cut should keep when selecting k of n values.
KITH_HOST_DEVICE inline KeepRange sample_range(uint32_t k, uint32_t n, int sample) {
  const float expected = static_cast<float>(k) * static_cast<float>(sample) / static_cast<float>(n);
  int least = static_cast<int>(expected + 4.5f * sqrtf(expected)) + 10;
  if (least > sample) least = sample;
  const int most = least + least / 4;
  return {least, most > sample ? sample : most};
}

}  // namespace kith
