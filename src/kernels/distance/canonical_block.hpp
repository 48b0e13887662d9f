// All pairs of some queries and rows whose canonical keys are wanted.
#pragma once

#include <kith/view.hpp>

#include "kernels/distance/distance_cpu.hpp"

#include <cstdint>

namespace kith {

struct CanonicalBlock {
  KeyKind kind = KeyKind::squared_l2;
  const CanonicalQuery* queries = nullptr;
  int64_t query_count = 0;
  const MatrixView& rows;
  float* keys = nullptr;  // of query q and row i at q * stride + i
  int64_t stride = 0;
};

}  // namespace kith
