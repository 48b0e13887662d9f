// The smallest of many values that lie side by side, in a few passes without branches.
//
// The m-th smallest minimum of interleaved groups is no smaller than the m-th smallest value, and where there are three
// times as many groups as values wanted, little larger: it is found by halving, and few values are below it.
//
// Time: two passes over the values, and about ten over the groups' minima.
#pragma once

#include "core/divide.hpp"
#include "kernels/select/set_bytes.hpp"

#include <algorithm>
#include <cstdint>

namespace kith {

// Groups for `most` values wanted, and so many minima.
constexpr int64_t smallest_groups(int64_t most) { return round_up(3 * most, 64); }

namespace smallest_values_detail {

template <typename T>
int64_t count_up_to(const T* values, int64_t count, T limit) {
  int32_t found = 0;
  for (int64_t i = 0; i < count; ++i) found += values[i] <= limit ? 1 : 0;
  return found;
}

template <typename T>
T middle(T a, T b) {
  return a / 2 + b / 2;
}

}  // namespace smallest_values_detail

// At least `wanted` of the values are not above it, and few more. No value is a NaN, and 0 < wanted <= count.
// `minima` has room for smallest_groups(wanted).
template <typename T>
T limit_of_smallest(const T* values, int64_t count, int64_t wanted, T* minima) {
  using namespace smallest_values_detail;
  const int64_t groups = std::min(smallest_groups(wanted), count);
  std::copy_n(values, groups, minima);
  for (int64_t first = groups; first < count; first += groups) {
    const int64_t here = std::min(groups, count - first);
    for (int64_t i = 0; i < here; ++i) minima[i] = values[first + i] < minima[i] ? values[first + i] : minima[i];
  }
  T low = *std::min_element(minima, minima + groups);
  T high = *std::max_element(minima, minima + groups);
  constexpr int kHalvings = 16;
  const int64_t enough = wanted + wanted / 8 + 1;
  for (int i = 0; i < kHalvings; ++i) {
    const T limit = middle(low, high);
    const int64_t found = count_up_to(minima, groups, limit);
    if (found < wanted) {
      low = limit;
    } else {
      high = limit;
      if (found <= enough) break;
    }
  }
  return high;
}

// The places of the values that are not above the limit, ascending. `places` has room for all. Returns how many.
template <typename T>
int64_t places_up_to(const T* values, int64_t count, T limit, uint32_t* places) {
  constexpr int64_t kTogether = 64;
  alignas(8) uint8_t passes[kTogether];
  int64_t found = 0;
  for (int64_t first = 0; first < count; first += kTogether) {
    const int64_t here = std::min(kTogether, count - first);
    if (here < kTogether) std::fill(passes, passes + kTogether, uint8_t{0});
    for (int64_t i = 0; i < here; ++i) passes[i] = values[first + i] <= limit ? 1 : 0;
    for_each_set(passes, here, [&](int64_t i) { places[found++] = static_cast<uint32_t>(first + i); });
  }
  return found;
}

}  // namespace kith
