// What a pass that compares every row with every centre sees of the rows besides: whether all are finite, and whether
// it is certain, without a sample, that they are compared as they are, not times a power of two (data_scale.hpp).
//
// That power is 1 where values are at most 2^55 from the sample's mean, and either a sampled row or every centre is at
// least 2^-45 from it in some column. The first holds where all values are at most 2^53. If the second did not, every
// sampled row would be within 2^-44 of some centre in all columns: so one whose least squared distance is more than
// that allows tells, and the last one is asked, since the first rows are often the centres.
#pragma once

#include "core/host_device.hpp"

#include <cstdint>

namespace kith {

// In device memory, all bits set before.
struct RowsSeen {
  uint32_t first_bad;   // the first row that is not finite
  uint32_t no_extreme;  // 0: a value is larger than 2^53, or no number
  uint32_t probe_near;  // 0: the probe's least squared distance is more than probe_limit
};

inline constexpr uint32_t kInfinityBits = 0x7F800000u;
inline constexpr uint32_t kLargestPlainBits = 0x5A000000u;  // of 2^53: magnitudes are in the order of their bits

// Four times what rows and centres within 2^-45 of one vector could have, and the rounding of sums.
KITH_HOST_DEVICE constexpr float probe_limit(int64_t cols) { return static_cast<float>(cols) * 0x1p-86f; }

#if defined(__CUDACC__)
__device__ __forceinline__ uint32_t magnitude_bits(float value) { return __float_as_uint(value) & 0x7FFFFFFFu; }

// `largest` is of magnitude_bits of the row, or of a part of it.
__device__ __forceinline__ void see_row(RowsSeen* seen, int64_t row, uint32_t largest) {
  if (seen == nullptr || largest <= kLargestPlainBits) return;
  seen->no_extreme = 0;
  if (largest >= kInfinityBits) atomicMin(&seen->first_bad, static_cast<uint32_t>(row));
}
#endif

}  // namespace kith
