// One version of an index: its state, the ids of the rows in it, and what those have lost. What is published together
// is seen together.
#pragma once

#include "index/id_table.hpp"
#include "index/index_state.hpp"
#include "rows/narrowed_rows.hpp"

#include <memory>

namespace kith {

struct IndexVersion {
  std::shared_ptr<const IndexState> state;
  IdTable ids;
  Offset offset = {};  // of all vectors and queries, told by the first that were trained on or added
};

}  // namespace kith
