// GGM: the lists of two sets of rows from the lists of each.
#pragma once

#include <kith/knn_graph.hpp>

#include "graph/build_outcome.hpp"
#include "graph/control_rows.hpp"
#include "graph/nn_descent/nn_descent.hpp"

namespace kith {

// Two graphs of consecutive rows of one collection: rows before `boundary` are the first's, the others the second's.
struct MergeInput {
  const KnnGraph& first;
  const KnnGraph& second;
  int64_t boundary;
};

// Fills empty lists. The rules of `wish` get the boundary.
BuildOutcome merge_pair(const PairRows& rows, const MergeInput& input, DescentWish wish, const ControlRows* control,
                        WorkingLists& lists, const Resources& resources);

// The same by exact search of either set in the other: nothing is missing but what the graphs miss.
void merge_exactly(const PairRows& rows, const MergeInput& input, WorkingLists& lists, const Resources& resources);

// Offers a graph's neighbours to the lists of rows first, first + 1, ..., which nobody else touches, old or new ones.
void offer_graph(const PairRows& rows, const KnnGraph& graph, int64_t first, WorkingLists& lists,
                 const Resources& resources);

}  // namespace kith
