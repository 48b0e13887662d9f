// The lists that NN-Descent begins with: distinct random rows, or the neighbours of a graph that is there.
#pragma once

#include <kith/resources.hpp>

#include "graph/lists/named_rows.hpp"
#include "graph/lists/pairs/pair_rows.hpp"
#include "graph/lists/working_lists.hpp"

#include <cstdint>

namespace kith {

// Fills every list up with distinct random rows (GNND's Algorithm 1 says p of them, its text k), where `boundary` is not
// 0 with rows of the other set alone. Of those that a list has already none is added.
void add_random_rows(const PairRows& rows, int64_t boundary, uint64_t seed, WorkingLists& lists,
                     const Resources& resources);

// Offers rows by their ids, in host memory. Their distances are computed again: what lists hold are keys of this
// collection.
void add_named_rows(const PairRows& rows, const NamedRows& named, WorkingLists& lists, const Resources& resources);

}  // namespace kith
