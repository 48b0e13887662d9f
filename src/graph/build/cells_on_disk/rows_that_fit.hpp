// How many rows a phase takes at a time: as many as leave a little of the limit free, for small arrays of the phase
// itself that grow with them and for calls that it makes.
#pragma once

#include <kith/resources.hpp>

#include "core/within_limits.hpp"

#include <algorithm>
#include <cstdint>

namespace kith {

// bytes_of(rows) grows with them. Where memory is only counted, the fewest.
template <typename BytesOf>
int64_t rows_that_fit(int64_t fewest, int64_t most, const Resources& resources, const BytesOf& bytes_of) {
  most = std::max(most, fewest);
  if (only_counts(resources)) return fewest;
  const int64_t least = bytes_of(fewest);
  const int64_t left = resources.host_memory()->available();
  if (left <= least) return fewest;
  const int64_t usable = least + (left - least) / 8 * 7;
  if (bytes_of(most) <= usable) return most;
  int64_t fits = fewest;  // and `most` does not
  while (most - fits > std::max<int64_t>(1, fits / 64)) {
    const int64_t middle = fits + (most - fits) / 2;
    (bytes_of(middle) <= usable ? fits : most) = middle;
  }
  return fits;
}

}  // namespace kith
