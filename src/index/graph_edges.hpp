// Conversion between the graph of an index and edges between its rows, which other libraries' files store.
#pragma once

#include <kith/index_edges.hpp>
#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "graph/search/graph/walk_view.hpp"
#include "index/index_parts.hpp"

#include <cstdint>

namespace kith {

// Edges between `rows` rows, of which the first are in the graph. The first row of a place is connected to those of the
// neighbouring places; rows at one place form a chain. Rows after those of the graph have no edges.
IndexEdges edges_between_rows(const PlaceRows& places, const uint32_t* edges, int64_t degree, int64_t rows,
                              const Resources& resources);
IndexEdges edges_between_rows(const GraphParts& graph, int64_t rows, const Resources& resources);

// The degree of a Graph with room for `neighbors` per list; 0 if that is too many.
int64_t degree_for(int64_t neighbors);

// Turns the parts of a Flat index, one block in host memory, into those of a graph index with these lists: rows x
// degree existing rows, padded with kNoEdge. Below kFewestWalkedRows rows the lists are not used.
void join_parts(IndexParts& parts, const HostArray<uint32_t>& lists, int64_t degree, const Resources& resources);

}  // namespace kith
