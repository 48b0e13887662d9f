// A k-NN graph in a folder: ids.npy (int64, or int32) and distances.npy (f32), rows x k, and report.json with the metric, how the
// graph was made, and two hashes by which graphs are told apart. The report is written last: a folder without it holds no
// whole graph.
#pragma once

#include <kith/export.hpp>
#include <kith/knn_graph.hpp>
#include <kith/resources.hpp>

#include <cstdint>
#include <string>

namespace kith {

// XXH3-64 of all ids as int64 and of all distances as f32, in row order. Two graphs with the same hashes are the same
// bytes, wherever and however they were built.
struct GraphHashes {
  uint64_t ids = 0;
  uint64_t distances = 0;
  bool operator==(const GraphHashes&) const = default;
};
KITH_EXPORT GraphHashes hash_graph(const KnnGraph& graph, const Resources& resources = Resources());

// What a folder keeps of a graph: less than all where disks are small.
struct GraphFolderForm {
  bool ids_only = false;   // no distances.npy; such a folder is read with IdFile, not loaded
  bool int32_ids = false;  // ids.npy holds int32, half as many bytes; they are read when it is loaded, not mapped
  bool operator==(const GraphFolderForm&) const = default;
};

// What report.json says that a graph depends on. Hashes are those of all ids as int64 and all distances in any form.
struct GraphFolderInfo {
  Metric metric = Metric::l2;
  int64_t rows = 0;
  int64_t k = 0;
  GraphHashes hashes;
  GraphFolderForm form = {};
};
// CorruptFile for a report that is none, InvalidArgument for a folder without one, Unsupported for a newer version.
KITH_EXPORT GraphFolderInfo graph_folder_info(const std::string& folder);

// Makes the folder where it is not there; a graph in it is replaced.
KITH_EXPORT void save_graph_folder(const KnnGraph& graph, const std::string& folder,
                                   const Resources& resources = Resources());
KITH_EXPORT void save_graph_folder(const KnnGraph& graph, const std::string& folder, const GraphFolderForm& form,
                                   const Resources& resources = Resources());

// The arrays are mapped (mapped_vectors.hpp says what that asks of the files), also under a memory limit, which does
// not count mapped pages. Throws InvalidArgument for what is no graph or has ids only, CorruptFile where the report is not that of the arrays.
KITH_EXPORT KnnGraph load_graph_folder(const std::string& folder, const Resources& resources = Resources());

}  // namespace kith
