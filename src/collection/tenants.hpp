// Queries with parameters of their own for one expression: each different list of parameters runs it once, by several
// connections at a time, and what it keeps is a list of places, not a bitmap over all items. A version keeps these lists
// for the next search. Groups come in rounds whose lists fit into memory.
#pragma once

#include <kith/collection.hpp>

#include "collection/kept_places.hpp"
#include "collection/state.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace kith {

// What one list of parameters keeps of each part.
struct TenantPlaces {
  std::vector<KeptPlaces> parts;

  int64_t bytes() const;
  int64_t list_bytes() const;  // which no limit counts
};

struct TenantRound {
  std::vector<int64_t> queries;  // their numbers
  std::vector<size_t> group_of;  // of each of these queries
  std::vector<std::shared_ptr<const TenantPlaces>> groups;
  std::vector<HostBuffer> counted;  // what the lists take, against a limit

  // What each group keeps of a part.
  std::vector<const KeptPlaces*> of_part(size_t part) const;
};

// InvalidArgument for parameters that do not go with the queries.
void check_params_of_queries(const ItemFilter& filter, const MatrixView& queries);

// Calls use(round) until all queries were in one. In a round queries of a group follow one another.
void for_tenants(const CollectionState& state, const ItemFilter& filter, const Resources& resources,
                 const std::function<void(const TenantRound&)>& use);

}  // namespace kith
