// The k-NN graph of a set of vectors: for every row its k nearest other rows.
//
// Neighbours are ordered as by knn(), by (distance, row). A row is never its own neighbour, but its duplicates are its
// neighbours. With fewer than k other rows, lists are padded with id -1, as in Neighbors. Vectors and caller's arrays
// may each be in host memory or in that of the CUDA device that searches, as in knn(), ordered on resources.stream. A
// returned KnnGraph is stored where the vectors are.
#pragma once

#include <kith/csr_matrix.hpp>
#include <kith/export.hpp>
#include <kith/graph_report.hpp>
#include <kith/host_buffer.hpp>
#include <kith/memory_space.hpp>
#include <kith/metric.hpp>
#include <kith/neighbors.hpp>
#include <kith/resources.hpp>
#include <kith/row_labels.hpp>
#include <kith/view.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace kith {

enum class GraphMethod : uint8_t {
  automatic,   // the fastest method for these rows and this recall
  exact,       // compares all pairs
  cells,       // compares a row with the rows of the k-means cells nearest to it
  nn_descent,  // compares neighbours of neighbours, in rounds
  ggm,         // builds a graph of each shard of the rows by nn_descent and merges all pairs of them (graph_merge.hpp)
};

KITH_EXPORT std::string_view name_of(GraphMethod method);
// "auto", "exact", "cells", "nn_descent", "ggm"; throws InvalidArgument listing the names.
KITH_EXPORT GraphMethod parse_graph_method(std::string_view name);

// The first neighbours of NN-Descent.
enum class GraphStart : uint8_t { automatic, random, cells };
// "auto", "random", "cells".
KITH_EXPORT std::string_view name_of(GraphStart start);
KITH_EXPORT GraphStart parse_graph_start(std::string_view name);

// Which of the compared pairs NN-Descent offers to the lists: the nearest of each sample only, or all.
enum class GraphUpdate : uint8_t { selective, all };
// "selective", "all".
KITH_EXPORT std::string_view name_of(GraphUpdate update);
KITH_EXPORT GraphUpdate parse_graph_update(std::string_view name);

// Defaults of optional parameters depend on rows, columns, k, metric and recall, never on the device: the same
// parameters and seed give the same bytes everywhere. Only the choice of `automatic` may differ between devices.
struct KnnGraphParams {
  int64_t k = 15;
  Metric metric = Metric::l2;
  GraphMethod method = GraphMethod::automatic;
  bool check_finite = true;  // refuse NaN and infinities, naming the row
  // The share of true neighbours to find, estimated on 1,000 rows drawn by the seed; 1: exact. `automatic` reaches it
  // unless that would take too many comparisons, a method that is named may stop below it. The report tells.
  double recall = 0.99;
  uint64_t seed = 0;

  // For cells: their number, and with how many of them a row is compared at most.
  std::optional<int64_t> cells = {};
  std::optional<int64_t> probes = {};

  // For nn_descent, and for ggm all but `start` and `update`.
  std::optional<GraphStart> start = {};
  std::optional<int64_t> samples = {};      // neighbours of a list that a round compares, new ones and as many old ones
  std::optional<int64_t> list_length = {};  // of the working lists, at least k
  std::optional<int64_t> iterations = {};   // rounds, at most
  std::optional<double> delta = {};         // stop after a round that changed at most delta * rows * k neighbours
  std::optional<GraphUpdate> update = {};

  // For ggm: shards of consecutive rows; two are in memory at a time. Default: one per 160,000,000 / list_length rows.
  std::optional<int64_t> shards = {};

  KITH_EXPORT void validate() const;
};

// A handle to immutable neighbours, which copies share. They are in host memory (Kith's, the caller's or a mapped file)
// or in that of a CUDA device: 12 bytes per row and neighbour.
class KnnGraph {
 public:
  KnnGraph() = default;
  // A graph of neighbours that were found elsewhere. Those in host memory are checked, as by validate().
  KITH_EXPORT KnnGraph(Neighbors neighbors, Metric metric, const Resources& resources = Resources());
  // The same for memory that `owner` keeps alive; rows and k are those of the view.
  KITH_EXPORT KnnGraph(const NeighborsView& neighbors, std::shared_ptr<const void> owner, Metric metric,
                       const Resources& resources = Resources());
  // The same without a check, for neighbours that came from a graph.
  KITH_EXPORT static KnnGraph unchecked(const NeighborsView& neighbors, std::shared_ptr<const void> owner,
                                        Metric metric);

  int64_t rows() const { return rows_; }
  int64_t k() const { return k_; }
  Metric metric() const { return metric_; }
  MemorySpace space() const { return space_; }
  // Row-major, rows x k, in space().
  const int64_t* ids(int64_t row = 0) const { return ids_ + row * k_; }
  const float* distances(int64_t row = 0) const { return distances_ + row * k_; }
  // How it was made.
  KITH_EXPORT const GraphReport& report() const;

  // InvalidArgument that names the first row to break a rule: ids are other rows of the graph, without duplicates; -1
  // only at the end of a row; distances are numbers in ascending order, nearest first.
  KITH_EXPORT void validate(const Resources& resources = Resources()) const;

  // The same graph in host memory or in that of a CUDA device; copies it unless it is there already.
  KITH_EXPORT KnnGraph to(MemorySpace space, const Resources& resources = Resources()) const;

  // The functions below work on the host, to which they copy a graph of a device. Each first checks, as validate()
  // does, that ids are rows.

  // For each row, the number of rows that have it as a neighbour: rows() values of int64.
  KITH_EXPORT HostBuffer in_degrees(const Resources& resources = Resources()) const;
  // Connected components, with edges in both directions.
  KITH_EXPORT RowLabels components(const Resources& resources = Resources()) const;

  // reversed(): row i holds the rows that have i as a neighbour. symmetric(): these and i's neighbours. mutual(): those
  // in both. If the two directions of an edge have different distances, the smaller one is used.
  KITH_EXPORT CsrMatrix reversed(const Resources& resources = Resources()) const;
  KITH_EXPORT CsrMatrix symmetric(const Resources& resources = Resources()) const;
  KITH_EXPORT CsrMatrix mutual(const Resources& resources = Resources()) const;

  // The neighbours without padding, as a sparse matrix of distances.
  KITH_EXPORT CsrMatrix to_csr(const Resources& resources = Resources()) const;
  // A precomputed graph for umap-learn and cuML: k + 1 columns, the row itself first at distance 0, in the metric's
  // unit. InvalidArgument for inner_product, which is not a distance, and if a row has fewer than k neighbours.
  KITH_EXPORT Neighbors to_umap(const Resources& resources = Resources()) const;
  // The symmetric weights between 0 and 1 that UMAP and scanpy give to edges; throws as to_umap() does.
  KITH_EXPORT CsrMatrix connectivities(const Resources& resources = Resources()) const;

 private:
  friend class GraphAccess;

  const int64_t* ids_ = nullptr;
  const float* distances_ = nullptr;
  int64_t rows_ = 0;
  int64_t k_ = 0;
  MemorySpace space_;
  Metric metric_ = Metric::l2;
  std::shared_ptr<const void> owner_;
  std::shared_ptr<const GraphReport> report_;
};

KITH_EXPORT KnnGraph knn_graph(const MatrixView& x, const KnnGraphParams& params = {},
                               const Resources& resources = Resources());

// The neighbours of every row into the caller's rows x k arrays.
KITH_EXPORT GraphReport knn_graph(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params,
                                  const Resources& resources = Resources());

}  // namespace kith
