// A k-NN graph in files: a pair of them, rows x k ids and rows x k distances, in any formats that hold those
// (vector_file.hpp). The metric is not in them.
//
// A graph is mapped where its files lie as it does: int64 ids and f32 distances in .npy or in HDF5 in one piece, f32
// distances in .fbin. Its pages then come from the disk when they are touched (mapped_vectors.hpp says what that asks of
// the files), and belong to no memory limit. All else is read: .ibin, .ivecs, .fvecs, and everything under a limit on the
// host's memory.
#pragma once

#include <kith/export.hpp>
#include <kith/knn_graph.hpp>
#include <kith/metric.hpp>
#include <kith/resources.hpp>

#include <string>

namespace kith {

// Throws InvalidArgument, naming the files and the first row that breaks a rule, for what is no graph.
KITH_EXPORT KnnGraph load_graph(const std::string& ids, const std::string& distances, Metric metric,
                                const Resources& resources = Resources());

// Either both files are new or neither is.
KITH_EXPORT void save_graph(const KnnGraph& graph, const std::string& ids, const std::string& distances,
                            const Resources& resources = Resources());

}  // namespace kith
