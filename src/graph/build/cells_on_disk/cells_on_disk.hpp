// The graph by cells (cells.hpp) of vectors that are read from files, with steps kept in a work folder: the same bytes
// as in memory, under any limit that has room for its least, after any number of kills.
//
//   survey         one pass: the fingerprint of the source, checks of values, the longest row, the sample for the cells
//   centres        k-means of the sample
//   plan           exact search of the control rows; the probes that the recall needs (probe_forecast.hpp)
//   found          a pass: the cell of each row, or the cells near it
//   rows, near     a pass: all rows in the order of cells, with the cells near each (cell_store.hpp)
//   lists          block by block (block_compare.hpp)
//
// Then lists are measured by the control rows, with more probes in the rare case that the forecast fell short, and
// written in the order of rows.
//
// Several processes share it where each is a part of the work (io/work_folder.hpp): steps that rank cells are dealt out,
// and each compares the blocks of its share of the places. The part that leads does the rest.
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
  bool keep = false;              // the steps, once all is done
  int64_t most_rows = INT64_MAX;  // of a block, for tests
  WorkPart part = {};
  int64_t step_rows = 0;  // whose cells are ranked in a step, for tests; else those of a hash of the source
  // Asked once the probes are foreseen, and again once the pairs are known that they compare: whether cells are still
  // what is wanted. None: they are. For one process alone: parts do not ask.
  std::function<bool(const ProbeForecast& forecast, std::optional<int64_t> pairs)> goes_on = {};
  bool exact_ends = false;  // an exact graph with which the method that takes least time ends
  int64_t file_bytes = 0;  // from which on steps have several files, for tests
};

// Where the graph goes: begin(), then the neighbours of all rows in order, then finish(). Where a step turns out to be
// damaged while it is read, all begins anew. Steps are deleted after finish().
class GraphSink {
 public:
  virtual ~GraphSink() = default;
  virtual void begin() = 0;
  virtual void append(const NeighborsView& part) = 0;
  virtual void finish(const GraphReport& report) = 0;  // without its time and memory
  // Bytes that it takes on the disk where this folder lies; 0 where it goes elsewhere. IoError where there is no room.
  virtual int64_t bytes_beside(const std::string& folder) const {
    (void)folder;
    return 0;
  }
  // Whether the files of a graph that was finished before are still there.
  virtual bool is_there() const { return true; }
};

// On the device of the resources, which is not automatic. None where it did not go on; the steps are deleted then.
std::optional<GraphReport> cells_on_disk(const VectorFile& x, const CellsWish& wish, bool check_finite,
                                         const DiskWork& work, GraphSink& sink, const Resources& resources);
// What that needs at least.
Footprint cells_on_disk_footprint(const VectorFile& x, const CellsWish& wish, const Resources& resources);

}  // namespace kith
