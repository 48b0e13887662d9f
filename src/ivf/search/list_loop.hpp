// The loop of every search of lists, on every device: batches of queries, results out.
//
// Queries whose lists hold too few vectors are searched once more with four times as many ranked lists, of which each
// takes the least number that hold enough; until none is left.
#pragma once

#include <kith/neighbors.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "ivf/search/lists_backend.hpp"
#include "kernels/select/range_hits.hpp"

#include <cstdint>

namespace kith {

// The nearest rows of every query, and their distances in the metric's unit, where `out` lies. Queries on the host may
// be of any dtype, those on a GPU are f32.
void search_lists(const ListSearcher& searcher, const MatrixView& queries, const NeighborsView& out,
                  const Resources& resources);
// The same packed, on the host.
void search_lists(const ListSearcher& searcher, const MatrixView& queries, uint64_t* neighbors,
                  const Resources& resources);

// All vectors in range in the queries' lists.
void range_search_lists(const ListSearcher& searcher, const MatrixView& queries, RangeHits& hits,
                        const Resources& resources);

}  // namespace kith
