// The rule for dropping a candidate (prune.hpp), for the CPU and kernels.
#pragma once

#include "core/host_device.hpp"

#include <cstdint>

namespace kith {

struct PruneRatio {
  double kept = 1;
  double place = 1;

  // `between`: the key between a kept candidate and this one; `own`: between the place and this one.
  KITH_HOST_DEVICE bool drops(double between, double own) const { return kept * between < place * own; }
};

PruneRatio prune_ratio(int64_t degree, bool keys_are_squares);

}  // namespace kith
