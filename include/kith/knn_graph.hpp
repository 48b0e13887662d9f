// The k-NN graph of a collection: for every row its k nearest other rows.
//
// Neighbours are in the order of knn(), by (distance, row); a row is never its own neighbour, but its duplicates are
// its neighbours. Where there are fewer than k other rows the rest is id -1, as in Neighbors. Vectors, and the arrays
// that the second function fills, may lie in host memory or, each for itself, in that of the CUDA device that searches,
// as in knn(), on resources.stream. The KnnGraph that the first function returns lies where the vectors do.
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
  automatic,   // what is soonest on these rows for the recall that is wanted
  exact,       // the distances of all pairs
  cells,       // a row is compared with the rows of the k-means cells nearest to it
  nn_descent,  // neighbours' neighbours are compared, in rounds
  ggm,         // the graph of each shard of the rows by nn_descent, and all of them merged, pair by pair (graph_merge.hpp)
};

KITH_EXPORT std::string_view name_of(GraphMethod method);
// "auto", "exact", "cells", "nn_descent", "ggm"; throws InvalidArgument listing the names.
KITH_EXPORT GraphMethod parse_graph_method(std::string_view name);

// What NN-Descent begins with.
enum class GraphStart : uint8_t { automatic, random, cells };
// "auto", "random", "cells".
KITH_EXPORT std::string_view name_of(GraphStart start);
KITH_EXPORT GraphStart parse_graph_start(std::string_view name);

// Which compared pairs NN-Descent offers to lists: the nearest of each sample alone, or all.
enum class GraphUpdate : uint8_t { selective, all };
// "selective", "all".
KITH_EXPORT std::string_view name_of(GraphUpdate update);
KITH_EXPORT GraphUpdate parse_graph_update(std::string_view name);

// Parameters that are not given follow from the rows, their columns, k, the metric and the recall, never from the device:
// the same parameters and seed give the same bytes everywhere. Only what `automatic` chooses may differ by device.
struct KnnGraphParams {
  int64_t k = 15;
  Metric metric = Metric::l2;
  GraphMethod method = GraphMethod::automatic;
  bool check_finite = true;  // refuse NaN and infinities, naming the row
  // The share of the true neighbours to be found, estimated on 1,000 rows drawn by the seed. `automatic` reaches it unless
  // too many pairs would have to be compared; a method that is named ends at its limit. Then the report says so. 1: exact.
  double recall = 0.99;
  uint64_t seed = 0;

  // For cells: how many there are, and how many each row is compared with at most.
  std::optional<int64_t> cells = {};
  std::optional<int64_t> probes = {};

  // For nn_descent; all but `start` and `update` for ggm too.
  std::optional<GraphStart> start = {};
  std::optional<int64_t> samples = {};      // new and old neighbours of a list that meet in a round, each
  std::optional<int64_t> list_length = {};  // of the working lists, at least k
  std::optional<int64_t> iterations = {};   // at most
  std::optional<double> delta = {};         // ends when at most delta rows k neighbours have entered in a round
  std::optional<GraphUpdate> update = {};

  // For ggm: equal shards of consecutive rows; memory holds two. Default: one for every 160,000,000 / list_length rows.
  std::optional<int64_t> shards = {};

  KITH_EXPORT void validate() const;
};

// A handle to neighbours that nobody changes: copies share them. They lie on the host, in Kith's memory, the caller's or
// a mapped file, or in the memory of a CUDA device. 12 bytes per row and neighbour.
class KnnGraph {
 public:
  KnnGraph() = default;
  // A graph of neighbours that were found elsewhere; validate() checks them.
  KITH_EXPORT KnnGraph(Neighbors neighbors, Metric metric, const Resources& resources = Resources());
  // The same of memory that `owner` keeps; rows and k are the view's. On a device it is not looked at.
  KITH_EXPORT KnnGraph(const NeighborsView& neighbors, std::shared_ptr<const void> owner, Metric metric,
                       const Resources& resources = Resources());

  int64_t rows() const { return rows_; }
  int64_t k() const { return k_; }
  Metric metric() const { return metric_; }
  MemorySpace space() const { return space_; }
  // Row-major, rows x k, in space().
  const int64_t* ids(int64_t row = 0) const { return ids_ + row * k_; }
  const float* distances(int64_t row = 0) const { return distances_ + row * k_; }
  // How it was made.
  KITH_EXPORT const GraphReport& report() const;

  // Throws InvalidArgument, naming the first row that breaks a rule: every id is another row of the graph, none is there
  // twice, -1 stands at the end of a row alone, and distances are numbers, nearest first.
  KITH_EXPORT void validate(const Resources& resources = Resources()) const;

  // The same graph in host memory, or in that of a CUDA device: a copy, unless it lies there.
  KITH_EXPORT KnnGraph to(MemorySpace space, const Resources& resources = Resources()) const;

  // What follows reads the graph on the host: one on a device is copied for it. Each first makes sure, as validate()
  // does, that ids are rows.

  // How many rows have each row as their neighbour: int64, rows() of them.
  KITH_EXPORT HostBuffer in_degrees(const Resources& resources = Resources()) const;
  // Rows that edges join, taken both ways.
  KITH_EXPORT RowLabels components(const Resources& resources = Resources()) const;

  // Row i holds those whose neighbour it is; its neighbours and those; its neighbours whose neighbour it is. Where an edge
  // and the one back tell two distances, the nearer one counts.
  KITH_EXPORT CsrMatrix reversed(const Resources& resources = Resources()) const;
  KITH_EXPORT CsrMatrix symmetric(const Resources& resources = Resources()) const;
  KITH_EXPORT CsrMatrix mutual(const Resources& resources = Resources()) const;

  // Without the rows themselves and without padding.
  KITH_EXPORT CsrMatrix to_csr(const Resources& resources = Resources()) const;
  // What umap-learn and cuML take as a precomputed graph: k + 1 columns, the row itself first at distance 0, in the
  // metric's unit. InvalidArgument for inner_product, which is no distance, and where a row has fewer than k others.
  KITH_EXPORT Neighbors to_umap(const Resources& resources = Resources()) const;
  // The weights, 0 to 1, with which UMAP and scanpy join rows, symmetric; where to_umap() throws, so does this.
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
