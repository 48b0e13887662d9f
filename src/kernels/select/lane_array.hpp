// Runs a schedule of lane_schedule.hpp on an array of registers.
//
// `Warp` says what a register is and how lanes meet: on the GPU (device_warp_cuda.hpp) a Value is one lane's value and
// a shuffle is a shuffle; in the tests' host model a Value is all 32 lanes' values. It gives Value, Flag, less(a, b),
// pick(flag, a, b), differ(flag, flag), lane_has(bit) and shuffle_xor(value, mask). Every move is a template argument,
// so that registers are only ever named by constants.
#pragma once

#include "cuda/device_core.hpp"
#include "kernels/select/lane_schedule.hpp"

#include <utility>

namespace kith {

template <typename Warp, LaneMove kMove, typename Value>
KITH_DEVICE_INLINE void run_move(Value* registers) {
  Value& low = registers[kMove.low];
  if constexpr (kMove.is_butterfly()) {
    const Value other = Warp::shuffle_xor(low, kMove.mask);
    low = Warp::pick(Warp::differ(Warp::less(other, low), Warp::lane_has(kMove.upper)), other, low);
  } else {
    Value& high = registers[kMove.high];
    const Value old_low = low;
    if constexpr (kMove.mask == 0) {
      const auto swap = Warp::less(high, low);
      low = Warp::pick(swap, high, low);
      high = Warp::pick(swap, old_low, high);
    } else {
      const Value from_high = Warp::shuffle_xor(high, kMove.mask);
      const Value from_low = Warp::shuffle_xor(old_low, kMove.mask);
      low = Warp::pick(Warp::less(from_high, low), from_high, low);
      high = Warp::pick(Warp::less(high, from_low), from_low, high);
    }
  }
}

template <typename Warp, typename Schedule, typename Value, size_t... kIndex>
KITH_DEVICE_INLINE void run_moves(Value* registers, std::index_sequence<kIndex...>) {
  (run_move<Warp, Schedule::kMoves[kIndex]>(registers), ...);
}

template <typename Warp, typename Schedule, typename Value>
KITH_DEVICE_INLINE void run_schedule(Value* registers) {
  run_moves<Warp, Schedule>(registers, std::make_index_sequence<Schedule::kMoves.size()>());
}

}  // namespace kith
