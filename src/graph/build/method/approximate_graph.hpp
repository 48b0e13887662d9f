// A graph by cells or by NN-Descent, from checked rows to the caller's arrays, with its report.
#pragma once

#include <kith/knn_graph.hpp>

#include <cstdint>

namespace kith {

// What becomes of cells that do not reach the recall.
struct CellsEnd {
  bool gives_up = false;  // they stop as soon as that is likely
  bool goes_on = false;   // rounds of NN-Descent improve what they have found
};

// `params` name the method, cells or nn_descent; the resources name the device, which is not automatic. Rows and results
// are in host memory or, each for itself, in that of the device. Times and peaks are the caller's to report.
GraphReport approximate_graph(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params,
                              const CellsEnd& end, const Resources& resources);

// What it takes on the host beside the results, on the CPU.
int64_t approximate_graph_bytes(const MatrixView& x, const KnnGraphParams& params, const Resources& resources);

// A device memory limit that would do for it on a GPU.
int64_t approximate_graph_device_bytes(const MatrixView& x, const KnnGraphParams& params);

}  // namespace kith
