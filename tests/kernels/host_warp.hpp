// A warp of 32 lanes on the CPU: a register is all lanes' values, a shuffle reads a partner's. It runs the kernels' own
// code (lane_array.hpp, warp_select.hpp) in lock step.
#pragma once

#include "kernels/select/lane_array.hpp"
#include "kernels/select/select_entry.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace kith {

template <typename T>
using Lanes = std::array<T, kWarpLanes>;

template <typename EntryType>
struct HostWarp {
  using Entry = EntryType;
  using Value = Lanes<Entry>;
  using Flag = Lanes<bool>;
  using Count = Lanes<int>;

  template <typename Make>
  static auto each(const Make& make) {
    Lanes<decltype(make(size_t{0}))> lanes{};
    for (size_t lane = 0; lane < kWarpLanes; ++lane) lanes[lane] = make(lane);
    return lanes;
  }

  static Value all(const Entry& entry) {
    return each([&](size_t) { return entry; });
  }
  static Count none() { return {}; }
  static Flag same(bool flag) {
    return each([&](size_t) { return flag; });
  }
  static Flag less(const Value& a, const Value& b) {
    return each([&](size_t lane) { return a[lane] < b[lane]; });
  }
  static Value pick(const Flag& flag, const Value& a, const Value& b) {
    return each([&](size_t lane) { return flag[lane] ? a[lane] : b[lane]; });
  }
  static Flag differ(const Flag& a, const Flag& b) {
    return each([&](size_t lane) { return a[lane] != b[lane]; });
  }
  static Flag both(const Flag& a, const Flag& b) {
    return each([&](size_t lane) { return a[lane] && b[lane]; });
  }
  static Flag lane_has(int bit) {
    return each([&](size_t lane) { return (lane & static_cast<size_t>(bit)) != 0; });
  }
  static Flag is(const Count& count, int n) {
    return each([&](size_t lane) { return count[lane] == n; });
  }
  static Count plus(const Count& count, const Flag& flag) {
    return each([&](size_t lane) { return count[lane] + flag[lane]; });
  }
  static bool any(const Flag& flag) {
    return std::any_of(flag.begin(), flag.end(), [](bool set) { return set; });
  }
  static Value shuffle_xor(const Value& value, int mask) {
    return each([&](size_t lane) { return value[lane ^ static_cast<size_t>(mask)]; });
  }
  static Value broadcast(const Value& value, int lane) { return all(value[static_cast<size_t>(lane)]); }
};

}  // namespace kith
