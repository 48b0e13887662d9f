// A k-NN graph as a pair of files: rows x k ids and rows x k distances, in any format for these (vector_file.hpp).
// The metric is not stored.
//
// Files with the memory layout of a graph are mapped: int64 ids and f32 distances in .npy or contiguous HDF5, f32
// distances in .fbin. Mapped pages do not count against memory limits; mapped_vectors.hpp says what mapping
// requires of a file. Other formats are read (.ibin, .ivecs, .fvecs), and so is everything under a limit on host
// memory.
#pragma once

#include <kith/export.hpp>
#include <kith/knn_graph.hpp>
#include <kith/metric.hpp>
#include <kith/resources.hpp>

#include <string>

namespace kith {

// InvalidArgument, with the files and the first invalid row, if they are not a graph.
KITH_EXPORT KnnGraph load_graph(const std::string& ids, const std::string& distances, Metric metric,
                                const Resources& resources = Resources());

// Replaces both files or neither.
KITH_EXPORT void save_graph(const KnnGraph& graph, const std::string& ids, const std::string& distances,
                            const Resources& resources = Resources());

}  // namespace kith
