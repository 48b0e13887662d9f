// GGM: the lists of two sets of rows from the lists of each.
#pragma once

#include <kith/knn_graph.hpp>

#include "graph/build/nn_descent/nn_descent.hpp"
#include "graph/lists/build_outcome.hpp"
#include "graph/lists/graph_lists.hpp"

namespace kith {

// Two graphs of consecutive rows of one collection: rows before `boundary` are the first's, the others the second's.
struct MergeInput {
  const KnnGraph& first;
  const KnnGraph& second;
  int64_t boundary;
};

// Fills empty lists. The rules of `wish` get the boundary.
BuildOutcome merge_pair(GraphLists& lists, const MergeInput& input, DescentWish wish, const Resources& resources);

// The same by exact search of either set in the other: nothing is missing but what the graphs miss.
void merge_exactly(GraphLists& lists, const MergeInput& input, const Resources& resources);

}  // namespace kith
