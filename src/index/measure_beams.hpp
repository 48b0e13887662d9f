// The recall of a graph index by beam, measured when its graph is built.
#pragma once

#include <kith/resources.hpp>

#include "graph/search/walk/beam_table.hpp"
#include "index/graph_state.hpp"

#include <cstdint>

namespace kith {

// On rows of its own: each is searched for as if its place were not in the graph, as new queries are. (With it they
// find their neighbours through its list: 0.96 on SIFT where new queries have 0.88.)
BeamTable measure_beams(const GraphState& state, uint64_t seed, const Resources& resources);

}  // namespace kith
