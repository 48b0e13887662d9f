// The graph by cells (cells.hpp) of vectors in files, with steps kept in a work folder: the same result as in memory,
// under any limit that suffices for the least memory, after any number of kills.
//
//   survey         one pass: the fingerprint of the source, checks of values, the longest row, the sample for the cells
//   centres        k-means of the sample
//   plan           exact search of the control rows; the probes that the recall needs (probe_forecast.hpp)
//   found          a pass: the cell of each row, or the cells near it
//   rows, near     a pass: all rows in the order of cells, with the cells near each (cell_store.hpp)
//   lists          block by block (block_compare.hpp)
//
// Then the recall of the lists is measured with the control rows, more probes are made in the rare case that the
// forecast was too low, and the lists are written in the order of rows.
//
// Several processes can each do a part of the work (io/work_folder.hpp): they share the steps that rank cells, and each
// compares the blocks of its share of the places. The leading part does the rest.
//
// Reads: four passes over the source, and (blocks + 1) x the rows. Disk: the rows with their probes, and the lists.
#pragma once

#include <kith/graph_report.hpp>
#include <kith/knn_graph.hpp>
#include <kith/neighbors.hpp>
#include <kith/resources.hpp>
#include <kith/vector_file.hpp>
#include <kith/work_part.hpp>

#include "core/footprint.hpp"
#include "graph/build/cells/cell_params.hpp"
#include "graph/build/cells/probe_forecast.hpp"
#include "io/disk.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace kith {

struct DiskWork {
  Disk& disk;
  std::string folder;
  bool keep = false;              // keep the steps after the work is done
  int64_t most_rows = INT64_MAX;  // of a block, for tests
  WorkPart part = {};
  int64_t step_rows = 0;  // rows per step that ranks cells, for tests; 0: those of a hash of the source
  // Called when the number of probes has been forecast, and again when the number of pairs is known: whether to
  // continue with cells. Empty: always. Only for a single process: parts do not call it.
  std::function<bool(const ProbeForecast& forecast, std::optional<int64_t> pairs)> goes_on = {};
  bool exact_ends = false;  // the fastest method may end with an exact graph
  int64_t file_bytes = 0;   // size above which a step is split into files, for tests
};

// Receives the graph: begin(), then the neighbours of all rows in order, then finish(). If a step turns out to be
// damaged while it is read, this starts over. Steps are deleted after finish().
class GraphSink {
 public:
  virtual ~GraphSink() = default;
  virtual void begin() = 0;
  virtual void append(const NeighborsView& part) = 0;
  // Otherwise distances may be null.
  virtual bool takes_distances() const { return true; }
  virtual void finish(const GraphReport& report) = 0;  // the report has no time and memory yet
  // Bytes needed on the disk of this folder; 0 if written elsewhere. Throws IoError if there is no room.
  virtual int64_t bytes_beside(const std::string& folder) const {
    (void)folder;
    return 0;
  }
  // Whether the files of a graph finished earlier still exist.
  virtual bool is_there() const { return true; }
};

// On the device of the resources, which must not be automatic. Empty if goes_on() ended it; the steps are deleted then.
std::optional<GraphReport> cells_on_disk(const VectorFile& x, const CellsParams& params, bool check_finite,
                                         const DiskWork& work, GraphSink& sink, const Resources& resources);
// The least memory of cells_on_disk().
Footprint cells_on_disk_footprint(const VectorFile& x, const CellsParams& params, const Resources& resources);

}  // namespace kith
