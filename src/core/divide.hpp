// Division that rounds up, on the host and the device. All arguments are at least 0, divisors at least 1.
#pragma once

#include "core/host_device.hpp"

#include <cstdint>

namespace kith {

KITH_HOST_DEVICE constexpr int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The smallest multiple that is no smaller than n.
KITH_HOST_DEVICE constexpr int64_t round_up(int64_t n, int64_t multiple) { return divide_up(n, multiple) * multiple; }

}  // namespace kith
