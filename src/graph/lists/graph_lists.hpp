// The lists that a graph is built in, on a device: it holds the rows as they are compared, the working lists, and the
// neighbours of the control rows. What each call means is the same on all devices.
//
// A builder is a loop over these calls. Where it compares rows itself it makes steps of its own from the lists of the
// device (graph_lists_cpu.hpp, graph_lists_cuda.hpp); the lists know no builder.
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

// Rows that lists are offered by their ids: neighbours of a graph, or what a search found.
struct NamedRows {
  const int64_t* ids = nullptr;  // count x k, each row's -1 at its end
  int64_t count = 0;
  int64_t k = 0;
  int64_t most = 0;      // the first so many of each; no more than k
  int64_t first = 0;     // the list that the first are offered to; the others follow
  int64_t first_id = 0;  // the row that is meant by id 0
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
  // Where the lists lie.
  virtual Device device() const = 0;
  // The collection, where the device reads it.
  virtual const MatrixView& view() const = 0;
  int64_t rows() const { return view().rows(); }
  virtual int64_t length() const = 0;

  // Empty lists, in the place of those there were.
  virtual void begin(int64_t length) = 0;
  // Lists of another length with what those there are hold, as far as it fits.
  virtual void resize(int64_t length) = 0;
  // Fills every list up with distinct random rows (start_rules.hpp), where `boundary` is not 0 with rows of the other
  // set alone.
  virtual void add_random_rows(uint64_t seed, int64_t boundary) = 0;
  // Offers rows to lists by their ids. Their distances are computed again: lists hold keys of this collection.
  virtual void add_rows(const NamedRows& rows) = 0;
  virtual ListSurvey survey(int64_t k, Flags flags) = 0;
  // The first k of every list, or of those of some rows, as the caller gets them.
  virtual void write(const NeighborsView& out, const RankPart& rows) = 0;
  void write_all(const NeighborsView& out) { write(out, {0, rows()}); }

  // On control rows; none: nothing is estimated.
  virtual std::optional<RecallEstimate> measure() = 0;
  virtual int64_t control_rows() const = 0;
};

// What is asked of a collection's rows when a graph of them is built.
struct GraphRowsWish {
  Metric metric = Metric::l2;
  int64_t k = 15;
  uint64_t seed = 0;         // of the control rows
  bool check_finite = true;  // refuse what cannot be compared, naming the row
  const GraphShare* share = nullptr;  // of a rank among others (graph_share.hpp)
};

// On a GPU: rows, lists and control rows stay there from the first round to the last. Rows in host memory are copied
// there. Work is enqueued on the resources' stream.
// `custom`: a metric of the user's, which must outlive them; the wish's says only that smaller is nearer then.
// InvalidArgument where the metric is not symmetric.
std::unique_ptr<GraphLists> make_graph_lists_cuda(int device, const MatrixView& x, const GraphRowsWish& wish,
                                                  const custom::GraphMetric* custom, const Resources& resources);

// Calls use(lists) with lists on the resources' device, over checked rows and with their control rows; they are gone
// afterwards. The device is not automatic, and holds the rows or can be given a copy.
void with_graph_lists(const MatrixView& x, const GraphRowsWish& rows, const Resources& resources,
                      const std::function<void(GraphLists&)>& use);

}  // namespace kith
