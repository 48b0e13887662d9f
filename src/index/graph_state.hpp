// The state of a graph index: the vectors in another state, which searches exactly, and in front of it a graph that is
// walked (graph/search). Rows that came after the graph was built have codes, the tail, and every walk compares them
// all.
//
// What a search returns: the first k by (distance, row) of the rows at the first places of the beam, place after place
// until they are refine * k rows that the filter keeps; distances are those of the state behind. A query whose beam has
// too few places that the filter keeps is walked again with a wider one. Where there is no graph, and where the plan
// says so (graph_plan.hpp), the first k of all kept rows.
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

// A graph some of whose rows the state no longer has: completed() makes one of the others of it.
struct GraphToCompact {
  std::shared_ptr<const WalkGraph> graph;
  HostArray<uint64_t> kept;  // bits of its rows
};

// What stands in front of the vectors.
struct GraphFront {
  std::shared_ptr<const WalkGraph> graph;            // null where all searches are exact
  GrowingArray<std::byte> tail;                      // codes of the rows behind those of the graph
  int64_t tail_clipped = 0;                          // values of these rows that codes do not reach
  std::shared_ptr<const BeamTable> table;            // there where a graph is
  std::shared_ptr<const GraphToCompact> to_compact;  // in the place of a graph, before the state is complete
  // Copies on GPUs of the graph that `copied` names, and of these vectors with such a tail.
  std::shared_ptr<const Placed<WalkGraphOnGpu>> on_gpus = nullptr;
  const WalkGraph* copied = nullptr;
  std::shared_ptr<const Placed<GraphRowsOnGpu>> rows_on_gpus = nullptr;
  std::shared_ptr<const GraphVectors> copied_vectors = nullptr;
  int64_t copied_tail = 0;

  // With a room of its own for copies where the one it has is another graph's, one that this has grown out of, or of
  // other rows: who still searches those may put a copy there.
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
  // `vectors` are the store's; the front covers all of its rows, none, or, before the state is complete, the first
  // ones.
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

 private:
  friend BeamTable measure_beams(const GraphState& state, uint64_t seed, const Resources& resources);

  // `hidden`: a place for each query that its walk does not see; null: none, as with a filter.
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

  // On a GPU (graph_state_gpu.cpp). False where such walks are the CPU's.
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
  // What searches all rows there.
  SharedState exact_on_gpu(int device, const Resources& resources) const;

  const SharedState store_;
  const std::shared_ptr<const GraphVectors> vectors_;
  const GraphFront front_;
  const IndexParams params_;
  const int64_t degree_;
};

// What a file holds of a graph, and of what its walks were measured to find; shared, not copied, but for lists that lie
// in pages.
GraphParts parts_of(const std::shared_ptr<const WalkGraph>& graph, const std::vector<BeamRecall>& measured,
                    const Resources& resources);

}  // namespace kith
