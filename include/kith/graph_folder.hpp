// A k-NN graph in a folder: ids.npy (int64 or int32) and distances.npy (f32), both rows x k, and report.json with the
// metric, how the graph was made, and two hashes that identify it. The report is written last: a folder without it does
// not hold a complete graph.
#pragma once

#include <kith/export.hpp>
#include <kith/knn_graph.hpp>
#include <kith/resources.hpp>

#include <cstdint>
#include <string>

namespace kith {

// XXH3-64 of all ids as int64, and of all distances as f32, in row order. Graphs with equal hashes have equal bytes,
// wherever and however they were built.
struct GraphHashes {
  uint64_t ids = 0;
  uint64_t distances = 0;  // 0 for a folder with ids only
  bool operator==(const GraphHashes&) const = default;
};
KITH_EXPORT GraphHashes hash_graph(const KnnGraph& graph, const Resources& resources = Resources());

// Smaller forms of a folder, for small disks.
struct GraphFolderForm {
  bool ids_only = false;   // without distances.npy; such a folder can be read with IdFile, but not loaded
  bool int32_ids = false;  // ids.npy of int32, half the size; loading reads them instead of mapping
  bool operator==(const GraphFolderForm&) const = default;
};

// The identifying part of report.json. The hash of the ids does not depend on the form.
struct GraphFolderInfo {
  Metric metric = Metric::l2;
  int64_t rows = 0;
  int64_t k = 0;
  GraphHashes hashes;
  GraphFolderForm form = {};
};
// CorruptFile for an invalid report, InvalidArgument for a folder without one, Unsupported for a newer version.
KITH_EXPORT GraphFolderInfo graph_folder_info(const std::string& folder);

// Creates the folder if it does not exist, and replaces a graph in it.
KITH_EXPORT void save_graph_folder(const KnnGraph& graph, const std::string& folder,
                                   const Resources& resources = Resources());
KITH_EXPORT void save_graph_folder(const KnnGraph& graph, const std::string& folder, const GraphFolderForm& form,
                                   const Resources& resources = Resources());

// Maps the arrays (see mapped_vectors.hpp), even under a memory limit, against which mapped pages do not count.
// InvalidArgument for an invalid graph and for a folder with ids only, CorruptFile if report and arrays do not match.
KITH_EXPORT KnnGraph load_graph_folder(const std::string& folder, const Resources& resources = Resources());

}  // namespace kith
