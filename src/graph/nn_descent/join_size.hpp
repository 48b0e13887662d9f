// How large a join is: small ones, whose products a warp keeps in its registers (small_join_cuda.hpp), and others.
//
// A join compares one set of samples with another: in a merge NEW ones with OLD ones, of which the fewer are the rows of the
// product; else NEW ones with all.
#pragma once

#include "graph/nn_descent/join_slots_cuda.hpp"

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
inline constexpr int kGroupRows = 16;  // that the matrix units multiply at a time

// Small joins have one or two groups of rows.
enum class JoinSize : uint8_t { one_group, two_groups, large };
inline constexpr int kJoinSizes = 3;

KITH_HOST_DEVICE constexpr JoinSize size_of(const JoinShape& shape) {
  if (shape.columns > kSmallColumns || shape.rows > 2 * kGroupRows) return JoinSize::large;
  return shape.rows <= kGroupRows ? JoinSize::one_group : JoinSize::two_groups;
}

}  // namespace kith
