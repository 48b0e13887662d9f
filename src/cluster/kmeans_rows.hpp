// The rows of a fit or a prediction, from memory or from a file.
#pragma once

#include <kith/resources.hpp>

#include "rows/row_source.hpp"
#include "rows/rows_info.hpp"

#include <cstdint>
#include <functional>
#include <memory>

namespace kith {

// Rows that a fit or a prediction can open, with room for so many at a time.
struct KMeansRows {
  RowsInfo info;
  std::function<std::unique_ptr<RowSource>(int64_t most, const Resources& resources)> open;
};

}  // namespace kith
