// The exact graph of vectors in files, in blocks of rows, each a step of a work folder (row_blocks.hpp).
//
//   survey      hashes of the rows, verified when the work is resumed
//   rows-4096   the neighbours of the rows from 4096 on
//
// Reads: all rows once, and once more for each batch of rows searched together. Disk: 12 k bytes per row.
#pragma once

#include <kith/graph_report.hpp>
#include <kith/knn_graph.hpp>
#include <kith/resources.hpp>
#include <kith/vector_file.hpp>

#include "core/footprint.hpp"
#include "graph/build/cells_on_disk/cells_on_disk.hpp"

namespace kith {

GraphReport exact_on_disk(const VectorFile& x, const KnnGraphParams& params, const DiskWork& work, GraphSink& sink,
                          const Resources& resources);
// The least memory of exact_on_disk().
Footprint exact_on_disk_footprint(const VectorFile& x, const KnnGraphParams& params, const Resources& resources);

}  // namespace kith
