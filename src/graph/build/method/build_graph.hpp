// A graph by the method that its parameters name or that takes least time, for who builds one inside a larger call.
#pragma once

#include <kith/knn_graph.hpp>

#include "core/machine_model.hpp"
#include "graph/build/cells/cell_params.hpp"
#include "graph/build/method/method_choice.hpp"

#include <vector>

namespace kith {

// Fills `out`. A row that is refused is one of "base". Time and peaks are the caller's to report.
GraphReport build_graph(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params,
                        const Resources& resources, const GraphBounds& most = {});

// The cells that parameters of the method cells ask for in so many rows.
CellsWish cells_wish(int64_t rows, const KnnGraphParams& params);

// What comparing so many pairs of values amounts to, with the rows that a GPU has to be brought.
Counts graph_counts(const std::vector<MatrixView>& rows, double products);

}  // namespace kith
