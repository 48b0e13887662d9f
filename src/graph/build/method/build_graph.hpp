// A graph by the method that its parameters name or that takes least time, for who builds one inside a larger call.
#pragma once

#include <kith/knn_graph.hpp>

#include "core/device_choice.hpp"

#include <string>
#include <vector>

namespace kith {

// Fills `out`. A row that is refused is one of "base". Time and peaks are the caller's to report.
GraphReport build_graph(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params,
                        const Resources& resources);

// What comparing so many pairs of values amounts to, with the rows that a GPU has to be brought.
Work graph_work(const std::vector<MatrixView>& rows, double products);
// Where the work is done: where rows and results lie, or on a GPU where that is predicted to take less time.
Device graph_device(const std::string& job, const std::string& description, std::vector<MemorySpace> spaces,
                    const Work& work, const Resources& resources);

}  // namespace kith
