// Which rows a list begins with, the same on every device.
#pragma once

#include "core/host_device.hpp"
#include "core/random.hpp"

#include <cstdint>

namespace kith {

inline constexpr uint32_t kNobody = 0xFFFFFFFFu;

// Stream of the draws that lists begin with.
inline constexpr uint64_t kStartStream = 0x57A47;

// The draw-th of the first rows of `row` (Floyd's algorithm: each set of distinct others is as likely): a number below
// `bound`, which counts the rows other than `row`.
KITH_HOST_DEVICE constexpr uint32_t start_draw(const CounterRng& rng, uint32_t row, int64_t draw, uint32_t bound) {
  return rng.below(static_cast<uint64_t>(row) << 24 | static_cast<uint64_t>(draw), bound);
}
KITH_HOST_DEVICE constexpr uint32_t other_row(uint32_t row, uint32_t draw) { return draw < row ? draw : draw + 1; }

// What lists on a GPU take while they begin: rows that are offered, for some lists at a time, and sets of rows for a
// metric of the user's (pairs/custom_sets_cuda.hpp).
inline constexpr int64_t kStartBytes = int64_t{256} << 20;
inline constexpr int64_t kSetBytes = int64_t{64} << 20;

}  // namespace kith
