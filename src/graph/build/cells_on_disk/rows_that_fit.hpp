// The number of rows that a phase processes at a time: as many as leave a little of the limit free, for the phase's own
// small arrays that grow with them and for calls that it makes.
#pragma once

#include <kith/resources.hpp>

#include "core/within_limits.hpp"
#include "cuda/device_info.hpp"

#include <algorithm>
#include <cstdint>

namespace kith {

// footprint_of(rows), or the bytes on the host, grow with them. Where memory is only counted, the fewest.
template <typename FootprintOf>
int64_t rows_that_fit(int64_t fewest, int64_t most, const Resources& resources, const FootprintOf& footprint_of) {
  most = std::max(most, fewest);
  if (counts_only(resources)) return fewest;
  const auto needed = [&](int64_t rows) { return Footprint(footprint_of(rows)); };
  const Footprint least = needed(fewest);
  const bool on_gpu = resources.device().kind == DeviceKind::cuda;
  const Footprint left{resources.host_memory()->available(),
                       on_gpu ? device_memory_left(resources.device().index, resources) : kNoLimit};
  if (left.host <= least.host || left.device <= least.device) return fewest;
  const Footprint usable{least.host + (left.host - least.host) / 8 * 7,
                         least.device + (left.device - least.device) / 8 * 7};
  const auto fits = [&](int64_t rows) {
    const Footprint taken = needed(rows);
    return taken.host <= usable.host && taken.device <= usable.device;
  };
  if (fits(most)) return most;
  int64_t known = fewest;  // to fit, and `most` does not
  while (most - known > std::max<int64_t>(1, known / 64)) {
    const int64_t middle = known + (most - known) / 2;
    (fits(middle) ? known : most) = middle;
  }
  return known;
}

}  // namespace kith
