// The shortest edges that join the parts of a graph: Boruvka's rounds again, with each part's nearest row outside found by
// exact search.
//
// The largest part need not look: all others do. A row of a part with s rows has its nearest other part's row among its
// s + 1 nearest rows, so small parts are searched together; a large one is searched with a filter that leaves it out.
// Cost: the rows of all parts but the largest are searched once a round, and a round halves the parts at least.
#pragma once

#include <kith/metric.hpp>
#include <kith/resources.hpp>
#include <kith/row_labels.hpp>
#include <kith/view.hpp>

#include "paths/merge_tree.hpp"

#include <vector>

namespace kith {

std::vector<ForestEdge> join_parts(RowLabels parts, const MatrixView& x, Metric metric, const Resources& resources);

}  // namespace kith
