// The k-NN graph of vectors in files, or of any other VectorFile. knn_graph() reads all rows into memory, which counts
// against the limit; knn_graph_folder() can work from disk.
#pragma once

#include <kith/export.hpp>
#include <kith/graph_folder.hpp>
#include <kith/graph_merge.hpp>
#include <kith/knn_graph.hpp>
#include <kith/resources.hpp>
#include <kith/vector_file.hpp>
#include <kith/work_part.hpp>

#include <string>
#include <vector>

namespace kith {

KITH_EXPORT KnnGraph knn_graph(const VectorFile& x, const KnnGraphParams& params = {},
                               const Resources& resources = Resources());

// The neighbours of every row into the caller's rows x k arrays.
KITH_EXPORT GraphReport knn_graph(const VectorFile& x, const NeighborsView& out, const KnnGraphParams& params,
                                  const Resources& resources = Resources());

// Work on disk, and the form of the result.
struct GraphWork {
  std::string folder;  // for intermediate files; empty: "work" in the graph's folder. If given, it is always used
  bool keep = false;   // do not delete the intermediate files at the end
  GraphFolderForm form = {};
  WorkPart part = {};  // one of several processes, by `cells`: all use the same folders and always work from disk
};

// Writes the graph to a folder (graph_folder.hpp), the same bytes under any limit. If rows and graph do not fit the
// limits on host and device, work is done from disk: `exact` (or a recall of 1) goes over the files block by block,
// `cells` works on the CPU or a GPU, and `ggm` on two shards at a time. `automatic` chooses between exact and cells as
// it does in memory. `nn_descent`, also when `automatic` would need it for these rows, takes the memory that its
// OutOfMemory names.
//
// After a kill the same call continues, also with another limit or device; the work's files are deleted at the end.
// Changed vectors, other parameters, and a second process in the work folder are refused, except other parts of the
// same work. Part 1 writes the graph, and all parts return its report.
KITH_EXPORT GraphReport knn_graph_folder(const VectorFile& x, const std::string& folder,
                                         const KnnGraphParams& params = {}, const Resources& resources = Resources());
KITH_EXPORT GraphReport knn_graph_folder(const VectorFile& x, const std::string& folder, const KnnGraphParams& params,
                                         const GraphWork& work, const Resources& resources = Resources());

// Whether knn_graph_folder() would work from disk whatever the limit: if a work folder is given, if its files are to be
// kept, or if there are some to continue from.
KITH_EXPORT bool keeps_graph_steps(const std::string& folder, const GraphWork& work);

// Files of vectors and their graph: in memory, or mapped (load_graph_folder), which no limit counts.
struct GraphOfFile {
  KnnGraph graph;
  VectorFile x;
};

// merge_graphs() (graph_merge.hpp) into a folder, with the same bytes under any limit. If not all parts fit, pairs are
// merged one by one, with files in a work folder as above, and two that do not fit are merged from disk, on the CPU.
KITH_EXPORT GraphReport merge_graphs_folder(const std::vector<GraphOfFile>& parts, const std::string& folder,
                                            const GraphMergeParams& params, const GraphWork& work = {},
                                            const Resources& resources = Resources());

// extend_graph() (graph_merge.hpp) into a folder, with the same bytes. Up to 4,096 new rows, or any number at a recall
// of 1, are compared with all rows from disk, under any limit, with files in a work folder as above; the report then
// has no recall, and the graph's distances must be those that Kith computes. More are merged as by merge_graphs_folder().
KITH_EXPORT GraphReport extend_graph_folder(const GraphOfFile& old, const VectorFile& fresh, const std::string& folder,
                                            const GraphMergeParams& params = {}, const GraphWork& work = {},
                                            const Resources& resources = Resources());

}  // namespace kith
