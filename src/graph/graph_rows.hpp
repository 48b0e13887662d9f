// What is asked of a collection's rows when a graph of them is built.
#pragma once

#include <kith/metric.hpp>

#include <cstdint>

namespace kith {

struct GraphRowsWish {
  Metric metric = Metric::l2;
  int64_t k = 15;
  uint64_t seed = 0;         // of the control rows
  bool check_finite = true;  // refuse what cannot be compared, naming the row
};

}  // namespace kith
