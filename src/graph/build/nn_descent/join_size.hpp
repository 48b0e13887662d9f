// How large a join is: small ones, of which some warps have one (small_join_cuda.cu), and others.
//
// A join compares one set of samples with another: in a merge NEW ones with OLD ones, of which the fewer are the rows
// of the product; else NEW ones with all.
#pragma once

#include "graph/build/nn_descent/join_slots_cuda.hpp"

#include <cstdint>

namespace kith {

struct JoinShape {
  int first_row = 0;
  int rows = 0;
  int first_column = 0;
  int columns = 0;
};

KITH_HOST_DEVICE constexpr JoinShape shape_of(const JoinCounts& counts, bool across) {
  if (!across) return {0, counts.fresh, 0, counts.all()};
  if (counts.fresh <= counts.old) return {0, counts.fresh, counts.fresh, counts.old};
  return {counts.fresh, counts.old, 0, counts.fresh};
}

inline constexpr int kSmallColumns = 64;

// Small joins have up to 16 or 32 rows, and are one warp's or two warps'.
enum class JoinSize : uint8_t { one_warp, two_warps, large };
inline constexpr int kJoinSizes = 3;

KITH_HOST_DEVICE constexpr int small_rows(JoinSize size) { return size == JoinSize::one_warp ? 16 : 32; }
// That fit: samples and slots, of which there are no more.
KITH_HOST_DEVICE constexpr int small_samples(JoinSize size) { return kSmallColumns + small_rows(size); }

KITH_HOST_DEVICE constexpr JoinSize size_of(const JoinShape& shape) {
  if (shape.columns > kSmallColumns || shape.rows > small_rows(JoinSize::two_warps)) return JoinSize::large;
  return shape.rows <= small_rows(JoinSize::one_warp) ? JoinSize::one_warp : JoinSize::two_warps;
}

}  // namespace kith
