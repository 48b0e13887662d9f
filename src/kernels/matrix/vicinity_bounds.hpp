// Which rows the neighbours of a query are among, told by another query: the proof behind searches of vicinities.
//
// A query's limit is a key that none of its neighbours exceeds. As a distance it is the query's reach. By the triangle
// inequality the neighbours of a query at distance d from a leader are within d + reach of the leader. So where that is
// no more than the leader's radius, they are among the rows within the radius.
//
// The same holds for inner products, whose keys are negative, with d times the norm of the longest row in the place of
// d: -l x <= -q x + |q - l| |x|. Reaches and radii are keys then. (Canonical sums of products round by 2^-50 of |q|
// |x|, far less than what the leader's window adds for its own products.)
#pragma once

#include "core/host_device.hpp"
#include "kernels/distance/canonical.hpp"

#include <cmath>

namespace kith {

// The kind of key that is computed between queries.
KITH_HOST_DEVICE constexpr KeyKind kind_between_queries(KeyKind kind) {
  return kind == KeyKind::inner_product ? KeyKind::l2 : kind;
}

// The distance of a key, past all its roundings.
KITH_HOST_DEVICE inline double distance_of_key(KeyKind kind, float key) {
  constexpr double kLoss = 0x1p-20;
  constexpr double kTiny = 0x1p-70;             // the root of a key below f32's normal range
  constexpr double kUnit = 0x1p-40;             // the rounding of unit vectors
  const double positive = key < 0 ? 0.0 : key;  // a NaN stays one
  if (kind == KeyKind::l2) return positive * (1 + kLoss) + kTiny;
  if (kind == KeyKind::cosine) return sqrt(2 * positive) * (1 + kLoss) + kUnit;
  return sqrt(positive) * (1 + kLoss) + kTiny;
}

// The reach of a limit, past its roundings.
KITH_HOST_DEVICE inline double reach_of_limit(KeyKind kind, float limit) {
  if (kind == KeyKind::inner_product) return limit + fabs(static_cast<double>(limit)) * 0x1p-20 + 0x1p-120;
  return distance_of_key(kind, limit);
}

// A key that no row within the radius exceeds.
KITH_HOST_DEVICE inline float key_within(KeyKind kind, double radius) {
  if (kind == KeyKind::inner_product) return static_cast<float>(radius + fabs(radius) * 0x1p-18 + 0x1p-120);
  const double more = radius * (1 + 0x1p-18);
  if (kind == KeyKind::l2) return static_cast<float>(more);
  return static_cast<float>(kind == KeyKind::cosine ? more * more / 2 : more * more);
}

}  // namespace kith
