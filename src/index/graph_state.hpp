// The state of a graph index: a store, which is another state that holds the vectors and can search them exactly, and a
// graph for walks (graph/search). Rows added since the graph was built form the tail; they have codes, and every walk
// compares all of them.
//
// A search returns the first k by (distance, row) of the rows at the first places of the beam, up to refine * k rows
// that the filter keeps; distances are those of the store. A query whose beam has too few kept places is walked again
// with a wider one. Without a graph, and if the plan says so (graph_plan.hpp), the result is the first k of all kept
// rows.
#pragma once

#include "core/growing_array.hpp"
#include "core/placed.hpp"
#include "graph/search/graph/walk_graph.hpp"
#include "graph/search/walk/beam_table.hpp"
#include "index/graph_comparer.hpp"
#include "index/graph_gpu.hpp"
#include "index/graph_plan.hpp"
#include "index/graph_vectors.hpp"
#include "index/index_state.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace kith {

// A graph with rows that the state no longer has; completed() turns it into a graph of the others.
struct GraphToCompact {
  std::shared_ptr<const WalkGraph> graph;
  HostArray<uint64_t> kept;  // bits of its rows
};

// The graph and what belongs to it.
struct GraphFront {
  std::shared_ptr<const WalkGraph> graph;            // null if all searches are exact
  GrowingArray<std::byte> tail;                      // codes of the rows after those of the graph
  int64_t tail_clipped = 0;                          // values of these rows outside the codes' range
  std::shared_ptr<const BeamTable> table;            // exists if the graph does
  std::shared_ptr<const GraphToCompact> to_compact;  // instead of a graph, until the state is complete
  // Copies on GPUs of the graph that `copied` names, and of these vectors with such a tail.
  std::shared_ptr<const Placed<WalkGraphOnGpu>> on_gpus = nullptr;
  const WalkGraph* copied = nullptr;
  std::shared_ptr<const Placed<GraphRowsOnGpu>> rows_on_gpus = nullptr;
  std::shared_ptr<const GraphVectors> copied_vectors = nullptr;
  int64_t copied_tail = 0;

  // With a holder of copies of its own, unless the present one is for this graph and these rows: searches of an older
  // version may still put copies into the shared one.
  GraphFront with_own_copies(const std::shared_ptr<const GraphVectors>& vectors) && {
    const bool other = copied != graph.get();
    if (on_gpus == nullptr || other) on_gpus = std::make_shared<const Placed<WalkGraphOnGpu>>();
    copied = graph.get();
    const bool other_tail = copied_tail != tail.size() || (other && tail.size() > 0);
    if (rows_on_gpus == nullptr || copied_vectors != vectors || other_tail) {
      rows_on_gpus = std::make_shared<const Placed<GraphRowsOnGpu>>();
    }
    copied_vectors = vectors;
    copied_tail = tail.size();
    return std::move(*this);
  }

  int64_t tail_rows() const { return tail.size() == 0 ? 0 : tail.size() / graph->coder.place_bytes(); }
  WalkView view() const { return graph->view(tail.data(), tail_rows()); }
  int64_t rows() const { return graph == nullptr ? 0 : graph->rows() + tail_rows(); }
};

class GraphState final : public IndexState {
 public:
  // `vectors` are those of the store. The front covers all of its rows or none, or until the state is complete, the
  // first ones.
  GraphState(SharedState store, std::shared_ptr<const GraphVectors> vectors, GraphFront front,
             const IndexParams& params, int64_t degree);

  void search(const MatrixView& queries, const NeighborsView& out, const SearchParams& params,
              const Resources& resources) const override;
  RangeNeighbors range_search(const MatrixView& queries, const RangeSearchParams& params,
                              const Resources& resources) const override;
  void search_all(const MatrixView& queries, const NeighborsView& out, const SearchParams& params,
                  const Resources& resources) const override;
  int64_t compared(const MatrixView& queries, const SearchParams& params, const Resources& resources) const override;

  void reconstruct(const uint32_t* rows, const MutableMatrixView& out, const Resources& resources) const override;
  IndexBytes bytes() const override;
  void describe(IndexInfo& info, const LiveRows& live) const override;
  void give_parts(IndexParts& parts, const Resources& resources) const override;

  const SharedState& store() const { return store_; }
  const GraphVectors& vectors() const { return *vectors_; }
  const std::shared_ptr<const GraphVectors>& shared_vectors() const { return vectors_; }
  const GraphFront& front() const { return front_; }
  Metric metric() const { return params_.metric; }
  GraphShape shape() const { return {degree_, content().cols * size_of(vectors_->dtype())}; }

 private:
  friend BeamTable measure_beams(const GraphState& state, uint64_t seed, const Resources& resources);

  // `hidden`: per query a place that its walk skips; null: none, as with a filter.
  struct Asked {
    MatrixView queries;
    RowFilter filter;
    const uint32_t* hidden = nullptr;
  };

  GraphSearch search_of(const SearchParams& params, int64_t kept) const;
  GraphComparer comparer_for(const GraphPlan& plan, int64_t k, int slots, const Resources& resources) const;
  void walk(const GraphPlan& plan, const Asked& asked, const NeighborsView& out, const KeptRows& kept,
            const Resources& resources) const;
  static void search_exactly(const IndexState& state, const std::vector<int64_t>& which, const MatrixView& queries,
                             const NeighborsView& out, const RowFilter& filter, const Resources& resources);
  void count_search(const MatrixView& queries, const NeighborsView& out, const SearchParams& params,
                    const Resources& resources) const;

  // On a GPU (graph_state_gpu.cpp). False if the CPU must do such walks.
  bool search_on_gpu(int device, const MatrixView& queries, const NeighborsView& out, const SearchParams& params,
                     const Resources& resources) const;
  // walk() on the GPU that the resources name.
  bool walk_on_gpu(const GraphPlan& plan, const Asked& asked, const NeighborsView& out, const KeptRows& kept,
                   const Resources& resources) const;
  void count_search_on_gpu(int device, const MatrixView& queries, const NeighborsView& out, const SearchParams& params,
                           const Resources& resources) const;
  std::shared_ptr<const WalkGraphOnGpu> graph_on_gpu(int device, const Resources& resources) const;
  std::shared_ptr<const GraphRowsOnGpu> rows_on_gpu(int device, const Resources& resources) const;
  // A copy there does not look at queries: these are looked at before.
  void refuse_bad_queries(const MatrixView& queries, const Resources& resources) const;
  // The state that searches all rows on that device.
  SharedState exact_on_gpu(int device, const Resources& resources) const;

  const SharedState store_;
  const std::shared_ptr<const GraphVectors> vectors_;
  const GraphFront front_;
  const IndexParams params_;
  const int64_t degree_;
};

// The parts of a file for a graph and the measured recalls of its walks; shared rather than copied, except for lists
// that are stored in pages.
GraphParts parts_of(const std::shared_ptr<const WalkGraph>& graph, const std::vector<BeamRecall>& measured,
                    const Resources& resources);

}  // namespace kith
