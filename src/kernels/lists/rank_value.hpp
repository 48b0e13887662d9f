// A value that at least `rank` of some values do not exceed, and few more do: the rank-th smallest or a little above
// it. By bisection between the least and the largest, a vectorised pass each; about ten for values without outliers.
#pragma once

#include <cstdint>

namespace kith {

// 1 <= rank <= count. Infinite where a value is, or is no number.
float rank_value(const float* values, int64_t count, int64_t rank);

// Keeps the values that are not above the limit, and what is beside them, in their order; a NaN stays. Returns how
// many. Up to a vector behind the last kept one is written over.
int64_t keep_up_to(float limit, float* values, uint32_t* beside, int64_t count);

}  // namespace kith
