// The key of what is not there: no row is as far.
#pragma once

#include <limits>

namespace kith {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace kith
