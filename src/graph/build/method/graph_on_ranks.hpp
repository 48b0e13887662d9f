// A graph built by several ranks: in memory, each comparing its share of the rows (graph/lists/graph_share.hpp); or by
// cells, from disk.
//
// For a graph by cells from disk, ranks (processes, or devices of a process) use a work folder that all of them see.
//
// Each is a part of the work (kith/work_part.hpp): steps and blocks are assigned by the contents of the folder, so the
// result is that of a single process, and any number of ranks can continue the work of others. Ranks exchange the
// request and the outcome; everything else goes through the folder. A rank that throws leaves a file that stops the
// others from waiting.
#pragma once

#include <kith/communicator.hpp>
#include <kith/graph_of_files.hpp>

#include <string>

namespace kith {

// All ranks return the report. With methods other than `cells` the graph is built in memory and written by rank 0.
// `work.part` must not be set.
GraphReport graph_on_ranks(Communicator& ranks, const VectorFile& x, const std::string& folder,
                           const KnnGraphParams& params, const GraphWork& work, const Resources& resources);

// In memory: all ranks must have, or read, the same rows in host memory, and work on their CPUs. All ranks return the
// whole graph.
KnnGraph graph_on_ranks(Communicator& ranks, const VectorFile& x, const KnnGraphParams& params,
                        const Resources& resources);
KnnGraph graph_on_ranks(Communicator& ranks, const MatrixView& x, const KnnGraphParams& params,
                        const Resources& resources);
// The same, into arrays in host memory.
GraphReport graph_on_ranks(Communicator& ranks, const MatrixView& x, const NeighborsView& out,
                           const KnnGraphParams& params, const Resources& resources);

}  // namespace kith
