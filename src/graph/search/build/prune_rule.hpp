// When a candidate is dropped (prune.hpp), on the CPU and in kernels.
#pragma once

#include "core/host_device.hpp"

#include <cstdint>

namespace kith {

struct PruneRatio {
  double kept = 1;
  double place = 1;

  // `between`: the key of a kept one and the candidate, `own`: of the place and the candidate, as numbers.
  KITH_HOST_DEVICE bool drops(double between, double own) const { return kept * between < place * own; }
};

PruneRatio prune_ratio(int64_t degree, bool keys_are_squares);

}  // namespace kith
