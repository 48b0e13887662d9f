// Queries with parameters of their own for one expression: each different list of parameters runs it once, and what it
// keeps is a list of places, not a bitmap over all items. Groups come in rounds whose lists fit into memory.
#pragma once

#include <kith/collection.hpp>

#include "collection/kept_places.hpp"
#include "collection/state.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace kith {

struct TenantRound {
  std::vector<int64_t> queries;               // their numbers
  std::vector<size_t> group_of;               // of each of these queries
  std::vector<std::vector<KeptPlaces>> kept;  // for each part those of each group
  std::vector<HostBuffer> counted;            // what the lists take, against a limit
};

// InvalidArgument for parameters that do not go with the queries.
void check_params_of_queries(const ItemFilter& filter, const MatrixView& queries);

// Calls use(round) until all queries were in one. In a round queries of a group follow one another.
void for_tenants(const CollectionState& state, const ItemFilter& filter, const Resources& resources,
                 const std::function<void(const TenantRound&)>& use);

}  // namespace kith
