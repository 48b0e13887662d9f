// Sorting networks on arrays of registers, and what runs them.
//
// `Warp` says what a register is and how lanes meet: on the GPU (device_warp_cuda.hpp) a Value is one lane's value and
// a shuffle is a shuffle; in the tests' host model a Value is all 32 lanes' values. It gives Value, Flag, less(a, b),
// pick(flag, a, b), differ(flag, flag), lane_has(bit) and shuffle_xor(value, mask). Every move is a template argument,
// so that registers are only ever named by constants.
#pragma once

#include "core/host_device.hpp"
#include "cuda/device_core.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace kith {

// Odd-size merging and sorting networks, as lists of compare-exchanges between numbered wires.
//
// "Billion-scale similarity search with GPUs" (2019), section 4.1, algorithms 1 and 2: Batcher's bitonic network on
// arrays padded to a power of two with elements that never move (before a left array, after a right one); comparisons
// with them are left out. A merge pairs mirrored wires first, so both inputs are sorted the same way, and every
// compare-exchange puts the smaller value on the lower wire. Merging takes ceil(log2(max(L, R))) + 1 parallel steps,
// sorting n wires (c^2 + c) / 2 with c = ceil(log2(n)).
inline constexpr int kWarpLanes = 32;

// ceil(log2(n)) for n > 0.
KITH_HOST_DEVICE constexpr int log2_ceil(int n) {
  int bits = 0;
  while ((1 << bits) < n) ++bits;
  return bits;
}

// Where the sort of n wires is split. The paper halves; a whole number of registers of 32 lanes is split between two
// registers, which is the same wherever n / 32 is even.
KITH_HOST_DEVICE constexpr int sort_split(int n) {
  return n > kWarpLanes && n % kWarpLanes == 0 ? n / (2 * kWarpLanes) * kWarpLanes : n / 2;
}

enum class MergeSide { left, right };

// Calls compare(low, high) for the wires first .. first + n - 1, whose values are within one half of a merge's output.
template <typename Compare>
constexpr void visit_merge_half(int first, int n, MergeSide side, const Compare& compare) {
  if (n <= 1) return;
  const int half = 1 << (log2_ceil(n) - 1);
  for (int i = 0; i < n - half; ++i) compare(first + i, first + i + half);
  const int left = side == MergeSide::left ? n - half : half;
  visit_merge_half(first, left, MergeSide::left, compare);
  visit_merge_half(first + left, n - left, MergeSide::right, compare);
}

// Merges the sorted wires first .. first + left - 1 with the sorted `right` wires that follow. Where only the smallest
// `left` values are wanted, the right half stays unsorted.
template <typename Compare>
constexpr void visit_merge(int first, int left, int right, bool sort_right, const Compare& compare) {
  const int pairs = left < right ? left : right;
  for (int i = 0; i < pairs; ++i) compare(first + left - 1 - i, first + left + i);
  visit_merge_half(first, left, MergeSide::left, compare);
  if (sort_right) visit_merge_half(first + left, right, MergeSide::right, compare);
}

template <typename Compare>
constexpr void visit_sort(int first, int n, const Compare& compare) {
  if (n <= 1) return;
  const int left = sort_split(n);
  visit_sort(first, left, compare);
  visit_sort(first + left, n - left, compare);
  visit_merge(first, left, n - left, true, compare);
}

// These networks on lane-stride register arrays: wire i is register i / 32 of lane i % 32.
//
// Arrays are whole registers long, so each step of a network is one of three moves of all lanes at once: two registers
// of the same lane (wires a multiple of 32 apart), a butterfly within one register (closer wires), or two registers
// with mirrored lanes (the first step of a merge). A schedule is a constexpr array of such moves, which the kernels
// unroll and the host model of the tests runs. Section 4.1 of the 2019 paper; n registers sort in
// O(n log^2(32 n)) moves.
struct LaneMove {
  uint8_t low = 0;    // register that gets the smaller values
  uint8_t high = 0;   // the other register; equal to `low` for a butterfly
  uint8_t mask = 0;   // partner lane = lane ^ mask
  uint8_t upper = 0;  // in a butterfly, lanes with this bit get the larger value

  constexpr bool is_butterfly() const { return low == high; }
  friend constexpr bool operator==(const LaneMove&, const LaneMove&) = default;
};

// Calls visit(move) in an order that respects the network's steps.
template <typename Visit>
constexpr void visit_lane_butterflies(int reg, int widest, const Visit& visit) {
  for (int h = widest; h >= 1; h /= 2) {
    visit(LaneMove{static_cast<uint8_t>(reg), static_cast<uint8_t>(reg), static_cast<uint8_t>(h),
                   static_cast<uint8_t>(h)});
  }
}

template <typename Visit>
constexpr void visit_lane_merge_half(int first, int registers, MergeSide side, const Visit& visit) {
  if (registers <= 1) {
    if (registers == 1) visit_lane_butterflies(first, kWarpLanes / 2, visit);
    return;
  }
  const int half = 1 << (log2_ceil(registers) - 1);
  for (int i = 0; i < registers - half; ++i) {
    visit(LaneMove{static_cast<uint8_t>(first + i), static_cast<uint8_t>(first + i + half), 0, 0});
  }
  const int left = side == MergeSide::left ? registers - half : half;
  visit_lane_merge_half(first, left, MergeSide::left, visit);
  visit_lane_merge_half(first + left, registers - left, MergeSide::right, visit);
}

template <typename Visit>
constexpr void visit_lane_merge(int first, int left, int right, bool sort_right, const Visit& visit) {
  const int pairs = left < right ? left : right;
  for (int i = 0; i < pairs; ++i) {
    visit(LaneMove{static_cast<uint8_t>(first + left - 1 - i), static_cast<uint8_t>(first + left + i), kWarpLanes - 1,
                   0});
  }
  visit_lane_merge_half(first, left, MergeSide::left, visit);
  if (sort_right) visit_lane_merge_half(first + left, right, MergeSide::right, visit);
}

template <typename Visit>
constexpr void visit_lane_sort(int first, int registers, const Visit& visit) {
  if (registers == 1) {
    for (int h = 1; h < kWarpLanes; h *= 2) {
      visit(LaneMove{static_cast<uint8_t>(first), static_cast<uint8_t>(first), static_cast<uint8_t>(2 * h - 1),
                     static_cast<uint8_t>(h)});
      visit_lane_butterflies(first, h / 2, visit);
    }
    return;
  }
  const int left = registers / 2;
  visit_lane_sort(first, left, visit);
  visit_lane_sort(first + left, registers - left, visit);
  visit_lane_merge(first, left, registers - left, true, visit);
}

template <typename Enumerate>
constexpr size_t count_lane_moves(const Enumerate& enumerate) {
  size_t count = 0;
  enumerate([&](const LaneMove&) { ++count; });
  return count;
}

template <size_t kCount, typename Enumerate>
constexpr std::array<LaneMove, kCount> collect_lane_moves(const Enumerate& enumerate) {
  std::array<LaneMove, kCount> moves{};
  size_t count = 0;
  enumerate([&](const LaneMove& move) { moves[count++] = move; });
  return moves;
}

// Registers 0 .. kRegisters - 1, in any order, become sorted.
template <int kRegisters>
struct SortSchedule {
  static constexpr auto enumerate = [](const auto& visit) { visit_lane_sort(0, kRegisters, visit); };
  static constexpr auto kMoves = collect_lane_moves<count_lane_moves(enumerate)>(enumerate);
};

// Registers 0 .. kLeft - 1 and the kRight that follow, each sorted: the first kLeft get the smallest values, sorted;
// the others get the rest, sorted where asked for.
template <int kLeft, int kRight, bool kSortRight>
struct MergeSchedule {
  static constexpr auto enumerate = [](const auto& visit) { visit_lane_merge(0, kLeft, kRight, kSortRight, visit); };
  static constexpr auto kMoves = collect_lane_moves<count_lane_moves(enumerate)>(enumerate);
};

// The first kRegisters after the mirrored step of a merge in which they were the left side.
template <int kRegisters>
struct LeftHalfSchedule {
  static constexpr auto enumerate = [](const auto& visit) {
    visit_lane_merge_half(0, kRegisters, MergeSide::left, visit);
  };
  static constexpr auto kMoves = collect_lane_moves<count_lane_moves(enumerate)>(enumerate);
};

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
