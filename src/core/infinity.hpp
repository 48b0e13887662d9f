// The key of a missing neighbour, larger than any row's.
#pragma once

#include <limits>

namespace kith {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace kith
