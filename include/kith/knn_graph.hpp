// The k-NN graph of a collection: for every row its k nearest other rows.
//
// Neighbours are in the order of knn(), by (distance, row); a row is never its own neighbour, but its duplicates are
// its neighbours. Where there are fewer than k other rows the rest is id -1, as in Neighbors. Vectors, and the arrays
// that the second function fills, may lie in host memory or, each for itself, in that of the CUDA device that searches,
// as in knn(), on resources.stream. A KnnGraph is on the host.
#pragma once

#include <kith/export.hpp>
#include <kith/host_buffer.hpp>
#include <kith/metric.hpp>
#include <kith/neighbors.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include <cstdint>
#include <string_view>

namespace kith {

enum class GraphMethod : uint8_t {
  automatic,  // what is fastest of what there is: exact
  exact,      // the distances of all pairs
};

KITH_EXPORT std::string_view name_of(GraphMethod method);
// "auto", "exact"; throws InvalidArgument listing the names.
KITH_EXPORT GraphMethod parse_graph_method(std::string_view name);

struct KnnGraphParams {
  int64_t k = 15;
  Metric metric = Metric::l2;
  GraphMethod method = GraphMethod::automatic;
  bool check_finite = true;  // refuse NaN and infinities, naming the row

  KITH_EXPORT void validate() const;
};

// A sparse rows x rows matrix of distances: those of row i are entries offsets[i] .. offsets[i + 1] - 1.
class CsrMatrix {
 public:
  CsrMatrix() = default;
  CsrMatrix(int64_t rows, int64_t entries, const Resources& resources)
      : offsets_((rows + 1) * 8, "the matrix's offsets", resources),
        columns_(entries * 8, "the matrix's columns", resources),
        values_(entries * 4, "the matrix's values", resources),
        rows_(rows) {}

  int64_t rows() const { return rows_; }
  int64_t size() const { return offsets()[rows_]; }
  int64_t* offsets() const { return offsets_.as<int64_t>(); }
  int64_t* columns() const { return columns_.as<int64_t>(); }  // ascending within a row
  float* values() const { return values_.as<float>(); }

 private:
  HostBuffer offsets_;
  HostBuffer columns_;
  HostBuffer values_;
  int64_t rows_ = 0;
};

class KnnGraph {
 public:
  KnnGraph() = default;
  // Of neighbours that were found elsewhere, which validate() looks at.
  KITH_EXPORT KnnGraph(Neighbors neighbors, Metric metric, const Resources& resources = Resources());

  int64_t rows() const { return neighbors_.queries(); }
  int64_t k() const { return neighbors_.k(); }
  Metric metric() const { return metric_; }
  const int64_t* ids(int64_t row = 0) const { return neighbors_.ids(row); }
  const float* distances(int64_t row = 0) const { return neighbors_.distances(row); }
  const Neighbors& neighbors() const { return neighbors_; }

  // Throws InvalidArgument, naming the row, unless every id is another row of the graph, none is there twice, and -1
  // stands at the end of a row alone.
  KITH_EXPORT void validate(const Resources& resources = Resources()) const;

  // Without the rows themselves and without padding.
  KITH_EXPORT CsrMatrix to_csr(const Resources& resources = Resources()) const;
  // What umap-learn and cuML take as a precomputed graph: k + 1 columns, the row itself first at distance 0, in the
  // metric's unit. InvalidArgument for inner_product, which is no distance, and where a row has fewer than k others.
  KITH_EXPORT Neighbors to_umap(const Resources& resources = Resources()) const;

 private:
  friend KITH_EXPORT KnnGraph knn_graph(const MatrixView& x, const KnnGraphParams& params, const Resources& resources);

  Neighbors neighbors_;
  Metric metric_ = Metric::l2;
};

KITH_EXPORT KnnGraph knn_graph(const MatrixView& x, const KnnGraphParams& params = {},
                               const Resources& resources = Resources());

// The neighbours of every row into the caller's rows x k arrays.
KITH_EXPORT void knn_graph(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params,
                           const Resources& resources = Resources());

}  // namespace kith
