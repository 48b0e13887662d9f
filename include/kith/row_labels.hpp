// Which of several sets each row is in.
#pragma once

#include <kith/host_buffer.hpp>

#include <cstdint>

namespace kith {

struct RowLabels {
  int64_t sets = 0;
  int64_t rows = 0;
  HostBuffer labels;  // int64 for each row: sets are 0, 1, 2, ... in the order of their first rows

  const int64_t* begin() const { return labels.as<int64_t>(); }
  const int64_t* end() const { return begin() + rows; }
};

}  // namespace kith
