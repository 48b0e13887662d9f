// A graph that several ranks build: in memory, each comparing its share of the rows (graph/lists/graph_share.hpp); or by
// cells, from disk.
//
// A graph by cells that several ranks, processes or devices of one, build in a work folder which all of them see.
//
// Each is a part of the work (kith/work_part.hpp): steps and blocks are dealt out by what lies in the folder, so the
// graph has the bytes of one process, and any number of ranks goes on with the work of others. Ranks exchange the
// request and how it ended; all else passes through the folder. A rank that throws leaves a file that ends the others'
// waiting.
#pragma once

#include <kith/communicator.hpp>
#include <kith/graph_of_files.hpp>

#include <string>

namespace kith {

// All ranks return the report. By other methods than `cells` it is built in memory, and rank 0 writes it. `work.part` is
// not the caller's to choose.
GraphReport graph_on_ranks(Communicator& ranks, const VectorFile& x, const std::string& folder,
                           const KnnGraphParams& params, const GraphWork& work, const Resources& resources);

// In memory, where all have the same rows in host memory, or read them, each on its CPU. All ranks have the whole graph
// then.
KnnGraph graph_on_ranks(Communicator& ranks, const VectorFile& x, const KnnGraphParams& params,
                        const Resources& resources);
KnnGraph graph_on_ranks(Communicator& ranks, const MatrixView& x, const KnnGraphParams& params,
                        const Resources& resources);
// The same into arrays in host memory.
GraphReport graph_on_ranks(Communicator& ranks, const MatrixView& x, const NeighborsView& out,
                           const KnnGraphParams& params, const Resources& resources);

}  // namespace kith
