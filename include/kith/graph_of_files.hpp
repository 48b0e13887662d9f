// The k-NN graph of vectors in files: one, several by a pattern, or rows from elsewhere (VectorFile). knn_graph() reads
// all rows into memory, which counts against the limit; knn_graph_folder() need not.
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

// Where work that does not fit in memory is kept, and what the graph's folder keeps.
struct GraphWork {
  std::string folder;  // empty: "work" in the graph's folder; one that is named is used without a limit too
  bool keep = false;   // its files, once the graph is there
  GraphFolderForm form = {};
  WorkPart part = {};  // of several processes, by `cells`: all name the same folders, and work from disk whatever the limit
};

// The graph goes to a folder (graph_folder.hpp), the same bytes under any limit. Where the limits on host and device have
// no room for the rows and the graph, `exact` (or a recall of 1) goes over the files block by block, `cells` works from disk, on the CPU or on a GPU, and `ggm` from disk, two shards at a time: the same call goes on after
// a kill, also with another limit or device, and its files are deleted at the end. `automatic` chooses among exact and
// cells as it does in memory. Changed vectors, other parameters and a second process in the work folder are refused, but
// for other parts of the same work: part 1 writes the graph, and all return its report once it is there. `nn_descent`,
// also where it is what these rows want, needs the memory that its OutOfMemory names.
KITH_EXPORT GraphReport knn_graph_folder(const VectorFile& x, const std::string& folder,
                                         const KnnGraphParams& params = {}, const Resources& resources = Resources());
KITH_EXPORT GraphReport knn_graph_folder(const VectorFile& x, const std::string& folder, const KnnGraphParams& params,
                                         const GraphWork& work, const Resources& resources = Resources());

// Whether that is done in steps whatever the limit: where they are asked for, by a folder or to be kept, and where some are
// there to go on with.
KITH_EXPORT bool keeps_graph_steps(const std::string& folder, const GraphWork& work);

// Files of vectors, and their graph: one in memory, or a mapped one (load_graph_folder), which no limit counts.
struct GraphOfFile {
  KnnGraph graph;
  VectorFile x;
};

// As merge_graphs (graph_merge.hpp), to a folder, with the same bytes under any limit that has room for the two largest
// parts: where all of more than two do not fit, pairs are merged one after the other, with steps in a work folder as above.
KITH_EXPORT GraphReport merge_graphs_folder(const std::vector<GraphOfFile>& parts, const std::string& folder,
                                            const GraphMergeParams& params, const GraphWork& work = {},
                                            const Resources& resources = Resources());

// As extend_graph (graph_merge.hpp), to a folder, with the same bytes. New rows that are compared with all, up to 4,096 of
// them or any number at a recall of 1, are so from disk, under any limit, with steps in a work folder as above; the report
// has no recall then, and the graph's distances must be those that Kith computes. More are merged in memory.
KITH_EXPORT GraphReport extend_graph_folder(const GraphOfFile& old, const VectorFile& fresh, const std::string& folder,
                                            const GraphMergeParams& params = {}, const GraphWork& work = {},
                                            const Resources& resources = Resources());

}  // namespace kith
