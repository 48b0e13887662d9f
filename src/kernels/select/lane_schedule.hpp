// The networks of odd_network.hpp on lane-stride register arrays: wire i is register i / 32 of lane i % 32.
//
// Arrays are whole registers long, so each step of a network is one of three moves of all lanes at once: two registers
// of the same lane (wires a multiple of 32 apart), a butterfly within one register (closer wires), or two registers
// with mirrored lanes (the first step of a merge). A schedule is a constexpr array of such moves, which the kernels
// unroll and the host model of the tests runs. Section 4.1 of the 2019 paper; n registers sort in
// O(n log^2(32 n)) moves.
#pragma once

#include "kernels/select/odd_network.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace kith {

struct LaneMove {
  uint8_t low = 0;    // register that gets the smaller values
  uint8_t high = 0;   // the other one; the same for a butterfly
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

}  // namespace kith
