// The smallest of many contiguous values, in a few passes without branches.
//
// The m-th smallest minimum of interleaved groups is no smaller than the m-th smallest value, and where there are three
// times as many groups as values wanted, little larger: it is found by halving, and few values are below it.
//
// Time: two passes over the values, and about ten over the groups' minima.
#pragma once

#include "core/divide.hpp"

#include <cstdint>

namespace kith {

// The number of groups, and thus of minima, to find `most` values.
constexpr int64_t smallest_groups(int64_t most) { return round_up(3 * most, 64); }

// At least `wanted` of the values are not above it, and few more. No value is a NaN, and 0 < wanted <= count.
// `minima` has room for smallest_groups(wanted).
float limit_of_smallest(const float* values, int64_t count, int64_t wanted, float* minima);
int32_t limit_of_smallest(const int32_t* values, int64_t count, int64_t wanted, int32_t* minima);

// The places of the values that are not above the limit, ascending. Returns how many. `places` has room for all, and
// for kPlacesPast more, which may be written to.
inline constexpr int64_t kPlacesPast = 64;
int64_t places_up_to(const float* values, int64_t count, float limit, uint32_t* places);
int64_t places_up_to(const int32_t* values, int64_t count, int32_t limit, uint32_t* places);

// For each of a few values how many of them come before it, by (value, place): where it belongs once they are sorted.
// All pairs are compared, which takes fewer than a hundred of them less time than sorting does. No value is a NaN.
void count_before(const float* values, int64_t count, uint32_t* before);

// The rank-th smallest, or a little above it, of values that are too few for groups: halved between the least and the
// largest of all, a pass each; about ten for values without outliers.
// 1 <= rank <= count. Infinite where a value is, or is no number.
float rank_value(const float* values, int64_t count, int64_t rank);

// Keeps the values that are not above the limit, and what is beside them, in their order; a NaN stays. Returns how
// many. Up to a vector behind the last kept one is written over.
int64_t keep_up_to(float limit, float* values, uint32_t* beside, int64_t count);

}  // namespace kith
