// The result object of kith_range_search and kith_index_range_search.
#pragma once

#include <kith/range_search.hpp>

struct kith_range {
  kith::RangeNeighbors found;
};
