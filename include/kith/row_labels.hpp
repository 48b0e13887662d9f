// A partition of rows into sets.
#pragma once

#include <kith/host_buffer.hpp>

#include <cstdint>

namespace kith {

struct RowLabels {
  int64_t sets = 0;
  int64_t rows = 0;
  HostBuffer labels;  // the set of each row, int64: sets are numbered 0, 1, 2, ... in the order of their first rows

  const int64_t* begin() const { return labels.as<int64_t>(); }
  const int64_t* end() const { return begin() + rows; }
};

}  // namespace kith
