// How new rows join a graph: compared with all rows, or by a graph of their own that is merged with the old one.
#pragma once

#include <kith/graph_merge.hpp>
#include <kith/knn_graph.hpp>

#include "graph/build/method/method_choice.hpp"

#include <cstdint>

namespace kith {

// Up to so many rows of one set are compared with all of the other: rounds would take longer.
inline constexpr int64_t kFewExtended = 4096;
// Whether that many new rows are compared with all rows: if they are few, or the recall is 1.
bool extends_exactly(int64_t fresh_rows, const GraphMergeParams& params);
// Like GraphMergeParams::validate(), but for extensions, which allow a recall of 1.
void validate_extension(const GraphMergeParams& params);
// How the graph of new rows is built before it is merged.
KnnGraphParams params_of_new_rows(const GraphProblem& fresh, const GraphMergeParams& params);

}  // namespace kith
