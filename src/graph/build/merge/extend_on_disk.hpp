// A graph with new rows behind its own, of vectors in files, under any limit: each new row is compared with all, as
// extend_graph() does where they are few. The old rows' neighbours are those of the graph and what is nearer among the
// new rows. Steps are kept in a work folder (row_blocks.hpp).
//
//   survey, survey-new   hashes of the rows of either file, which are verified when work goes on
//   rows-4096            the neighbours of the old rows from 4096 on, numbered through
//   new-0                those of the new rows
//
// Cost: new rows x all rows. Reads: the old rows twice, and once more for each batch of new rows that are searched
// together; the new rows once for each block of old ones. Disk: 12 k bytes a row.
#pragma once

#include <kith/graph_merge.hpp>
#include <kith/graph_of_files.hpp>
#include <kith/graph_report.hpp>
#include <kith/resources.hpp>
#include <kith/vector_file.hpp>

#include "core/footprint.hpp"
#include "graph/build/cells_on_disk/cells_on_disk.hpp"

namespace kith {

// The rows of the graph and the new ones have the same columns and dtype.
GraphReport extend_on_disk(const GraphOfFile& old, const VectorFile& fresh, const GraphMergeParams& params,
                           const DiskWork& work, GraphSink& sink, const Resources& resources);
// What that needs at least.
Footprint extend_on_disk_footprint(const GraphOfFile& old, const VectorFile& fresh, const GraphMergeParams& params,
                                   const Resources& resources);

}  // namespace kith
