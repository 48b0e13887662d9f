// Extends a graph by new rows, with vectors in files, under any limit: each new row is compared with all rows, as in
// extend_graph() when they are few; many are compared with the old rows alone, if these are few. The old rows'
// neighbours are those of the graph and nearer ones among the new rows.
// Steps are kept in a work folder (row_blocks.hpp).
//
//   survey, survey-new   hashes of the rows of each file, verified when the work is resumed
//   rows-4096            the neighbours of the old rows from 4096 on; new rows are numbered after the old ones
//   new-0                those of the new rows
//
// Cost: new rows x all rows. Reads: the old rows twice, and once more for each batch of new rows searched together;
// the new rows once for each block of old ones. Disk: 12 k bytes per row.
#pragma once

#include <kith/graph_merge.hpp>
#include <kith/graph_of_files.hpp>
#include <kith/graph_report.hpp>
#include <kith/resources.hpp>
#include <kith/vector_file.hpp>

#include "core/footprint.hpp"
#include "graph/build/cells_on_disk/cells_on_disk.hpp"

namespace kith {

// The new rows, and their graph if they are not compared with each other.
struct NewRows {
  const VectorFile& x;
  const KnnGraph* graph = nullptr;
};

// The rows of the graph and the new rows must have the same columns and dtype.
GraphReport extend_on_disk(const GraphOfFile& old, const NewRows& fresh, const GraphMergeParams& params,
                           const DiskWork& work, GraphSink& sink, const Resources& resources);
// The least memory of extend_on_disk().
Footprint extend_on_disk_footprint(const GraphOfFile& old, const NewRows& fresh, const GraphMergeParams& params,
                                   const Resources& resources);

}  // namespace kith
