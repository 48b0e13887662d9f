// One version of an index: its state and the ids of the rows in it. What is published together is seen together.
#pragma once

#include "index/id_table.hpp"
#include "index/index_state.hpp"

#include <memory>

namespace kith {

struct IndexVersion {
  std::shared_ptr<const IndexState> state;
  IdTable ids;
};

}  // namespace kith
