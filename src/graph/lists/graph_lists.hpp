// The lists that a graph is built in, on a device: the rows in the form that is compared, the working lists, and the
// neighbours of the control rows. Every call means the same on all devices.
//
// A builder is a loop over these calls. A builder that compares rows itself has steps of its own for each device
// (graph_lists_cpu.hpp, graph_lists_cuda.hpp); the lists know no builder.
#pragma once

#include <kith/custom_metric_cuda.hpp>
#include <kith/device.hpp>
#include <kith/knn_graph.hpp>
#include <kith/neighbors.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "graph/lists/control_rows.hpp"
#include "graph/lists/working_lists.hpp"
#include "ranks/agreement.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace kith {

// Rows to offer to lists, by ids: the neighbours of a graph, or the results of a search.
struct NamedRows {
  const int64_t* ids = nullptr;  // count x k, each row's -1 at its end
  int64_t count = 0;
  int64_t k = 0;
  int64_t most = 0;      // how many of each row's first ids; at most k
  int64_t first = 0;     // the list for the first row; the others follow
  int64_t first_id = 0;  // the row with id 0
  MemorySpace space = MemorySpace::host();
};

// The first neighbours of a graph whose rows are first, first + 1, ... of the collection.
inline NamedRows named_by(const KnnGraph& graph, int64_t first, int64_t most) {
  return {graph.ids(), graph.rows(), graph.k(), std::min(most, graph.k()), first, first, graph.space()};
}

class GraphShare;

class GraphLists {
 public:
  virtual ~GraphLists() = default;
  // The device of the lists.
  virtual Device device() const = 0;
  // The collection, in memory that the device reads.
  virtual const MatrixView& view() const = 0;
  int64_t rows() const { return view().rows(); }
  virtual int64_t length() const = 0;

  // Replaces the lists by empty ones.
  virtual void begin(int64_t length) = 0;
  // Changes the length of the lists; their entries are kept as far as they fit.
  virtual void resize(int64_t length) = 0;
  // Fills every list with distinct random rows (start_rules.hpp); if `boundary` is not 0, only with rows of the other
  // set.
  virtual void add_random_rows(uint64_t seed, int64_t boundary) = 0;
  // Offers rows to lists by their ids. Distances are recomputed: lists hold this collection's keys.
  virtual void add_rows(const NamedRows& rows) = 0;
  virtual ListSurvey survey(int64_t k, Flags flags) = 0;
  // The first k of every list, or of a range of rows, as the result.
  virtual void write(const NeighborsView& out, const RankPart& rows) = 0;
  void write_all(const NeighborsView& out) { write(out, {0, rows()}); }

  // What several ranks or devices share; null where one builds alone. Each has the lists of all rows.
  virtual const GraphShare* share() const = 0;
  // Completes them, of which each has changed those of its own rows.
  virtual void give_lists() = 0;

  // Estimated on control rows; none without them.
  virtual std::optional<RecallEstimate> measure() = 0;
  virtual int64_t control_rows() const = 0;
};

// The options for a collection's rows when a graph of them is built.
struct GraphRowsParams {
  Metric metric = Metric::l2;
  int64_t k = 15;
  uint64_t seed = 0;         // of the control rows
  bool check_finite = true;  // refuse what cannot be compared, naming the row
  const GraphShare* share = nullptr;  // one rank's share (graph_share.hpp)
};

// On a GPU: rows, lists and control rows stay there from the first round to the last. Rows in host memory are copied
// there. Work is enqueued on the resources' stream.
// `custom`: a metric of the user's, which must outlive them; the params's says only that smaller is nearer then.
// InvalidArgument if the metric is not symmetric.
std::unique_ptr<GraphLists> make_graph_lists_cuda(int device, const MatrixView& x, const GraphRowsParams& params,
                                                  const custom::GraphMetric* custom, const Resources& resources);

// Calls use(lists) with lists on the resources' device, over checked rows and with their control rows; they are
// destroyed afterwards. The device must not be automatic; it holds the rows or receives a copy.
void with_graph_lists(const MatrixView& x, const GraphRowsParams& rows, const Resources& resources,
                      const std::function<void(GraphLists&)>& use);

}  // namespace kith
