// The neighbours of some rows of a graph with the true distances of the vectors, whatever distances the graph has:
// those of codes, in another unit, or none.
#pragma once

#include <kith/metric.hpp>
#include <kith/neighbors.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/host_array.hpp"

#include <cstdint>
#include <vector>

namespace kith {

// For each of `rows`, k packed neighbours (core/ordered_key.hpp), sorted, padded at the end. The graph must have been
// checked; it and `x` may be in any memory.
HostArray<uint64_t> true_lists(const MatrixView& x, Metric metric, const std::vector<uint32_t>& rows,
                               const NeighborsView& graph, const Resources& resources);

// The number of vectors held at a time for the lists of `count` rows.
int64_t true_lists_rows(int64_t count, int64_t k);

}  // namespace kith
