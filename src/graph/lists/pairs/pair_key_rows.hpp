// A collection on a GPU whose rows are compared pair by pair (pair_key_cuda.hpp), as kernels get it.
#pragma once

#include <kith/custom_metric_cuda.hpp>

#include "kernels/distance/canonical.hpp"
#include "rows/device_rows.hpp"

#include <cstdint>

namespace kith {

struct PairKeyRows {
  DeviceRowsView rows;  // all of them, with inverse norms for cosine
  int64_t cols = 0;
  KeyKind kind = KeyKind::l2;
  // A metric of the user's in place of the kind; whoever launches looks at it, no kernel does.
  const custom::GraphMetric* custom = nullptr;
};

}  // namespace kith
