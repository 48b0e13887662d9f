// The loop of every k-NN search, on every device: batches of queries, pieces of the base, results out.
#pragma once

#include <kith/knn.hpp>

#include "exact/exact_search.hpp"

namespace kith {

// Results of all queries go to the caller's arrays, or batch by batch to a sink.
void search_knn(const SearchShape& shape, const SearchWish& wish, const SearchInput& input, const NeighborsView& out,
                const Resources& resources);
void search_knn(const SearchShape& shape, const SearchWish& wish, const SearchInput& input, const NeighborsSink& sink,
                const Resources& resources);
// The same once it is settled; there is something to find.
void search_knn(const SettledSearch& search, const NeighborsView& out);

}  // namespace kith
