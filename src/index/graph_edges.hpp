// Edges between the rows of a graph index, out of it and into it: what others' files of graphs hold.
#pragma once

#include <kith/index_edges.hpp>
#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "graph/search/graph/walk_view.hpp"
#include "index/index_parts.hpp"

#include <cstdint>

namespace kith {

// Edges between `rows` rows, the first of which are in the graph. The first row of a place is joined to those of the
// neighbouring places; rows at one place form a chain. Rows behind the graph's have no edges.
IndexEdges edges_between_rows(const PlaceRows& places, const uint32_t* edges, int64_t degree, int64_t rows,
                              const Resources& resources);
IndexEdges edges_between_rows(const GraphParts& graph, int64_t rows, const Resources& resources);

// The degree of a Graph whose lists have room for so many; 0 where none has.
int64_t degree_for(int64_t neighbors);

// Makes parts of vectors, one block in host memory, those of a graph index with these lists (rows x degree, kNoEdge
// behind the last of each; rows that are there). Below kFewestWalkedRows rows they are not needed.
void join_parts(IndexParts& parts, const HostArray<uint32_t>& lists, int64_t degree, const Resources& resources);

}  // namespace kith
