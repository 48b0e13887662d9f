// The rounds of a graph on the CPU, over rows in host memory.
#pragma once

#include "graph/graph_backend.hpp"
#include "graph/pairs/pair_rows.hpp"
#include "graph/working_lists.hpp"

#include <memory>

namespace kith {

// Over rows, control rows (or none) and lists of the caller's, which must outlive it; lists keep their place when they
// get another length.
std::unique_ptr<GraphBackend> make_graph_backend_cpu(const PairRows& rows, Metric metric, const ControlRows* control,
                                                     WorkingLists& lists, const Resources& resources);

}  // namespace kith
