// The core of the pass over freshly arrived vectors: is a vector finite, has it values below zero, and what is its
// inverse norm? One thread, one vector; the sum is the canonical one, its lanes in registers.
#pragma once

#include "cuda/device_core.hpp"
#include "kernels/distance/canonical.hpp"

#include <cstdint>

namespace kith {

struct InspectedRow {
  bool finite;
  bool negative;
  double inverse_norm;
};

template <typename T>
KITH_DEVICE inline InspectedRow inspect_row(const T* row, int64_t cols) {
  double lanes[kCanonicalLanes] = {};
  bool finite = true;
  bool negative = false;
  for (int64_t first = 0; first < cols; first += kCanonicalLanes) {
    KITH_UNROLL
    for (int j = 0; j < kCanonicalLanes; ++j) {
      const double value = first + j < cols ? static_cast<double>(row[first + j]) : 0.0;
      finite = finite && value - value == 0.0;
      negative = negative || value < 0.0;
      lanes[j] = fma(value, value, lanes[j]);
    }
  }
  return {finite, negative, canonical_inverse_norm(canonical_tree(lanes))};
}

}  // namespace kith
