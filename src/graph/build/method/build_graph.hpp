// Builds a graph by the method that its parameters name, or the fastest one, for use within larger calls.
#pragma once

#include <kith/knn_graph.hpp>

#include "core/machine_model.hpp"
#include "graph/build/cells/cell_params.hpp"
#include "graph/build/cells/probe_forecast.hpp"
#include "graph/build/method/method_choice.hpp"
#include "rows/rows_info.hpp"

#include <vector>

namespace kith {

// Builds into `out`. A rejected row is reported as one of "base". The caller reports time and peak memory. `share`: the
// part of a rank among several, on CPUs; each fills its own `out`.
GraphReport build_graph(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params,
                        const Resources& resources, const GraphBounds& most = {}, const GraphShare* share = nullptr);
// knn_graph() with an optional share.
KnnGraph knn_graph_of(const MatrixView& x, const KnnGraphParams& params, const GraphShare* share,
                      const Resources& resources);
GraphReport knn_graph_of(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params,
                         const GraphShare* share, const Resources& resources);

// Chooses the fastest method as more becomes known about the rows: before cells are learned, after that, and once all
// rows are assigned to cells. Exact search is chosen early if it is faster than a single probe, or than cells of equal
// size, which make the fewest pairs; both assume products to be as precise for all rows as for the control rows.
class SoonestMethod {
 public:
  // `builds`: the device that builds the graph.
  SoonestMethod(const GraphProblem& problem, const KnnGraphParams& params, DeviceKind builds);

  // Cells with the largest number of probes allowed.
  const CellsParams& params() const { return params_; }
  // Whether NN-Descent may be fastest, and the number of probes that it starts with.
  bool may_descend() const { return may_descend_; }
  int64_t begins() const { return begins_; }
  // Whether comparing all pairs takes too long to be chosen by default.
  bool exact_is_refused() const;

  // `blur`: see CellsWork.
  GraphMethod before_cut(const ProbeForecast& forecast, double blur) const;
  GraphMethod after_cut(const ProbeForecast& forecast, int64_t pairs, double blur) const;
  // The work if all cells have the same size.
  CellsWork least_work(const ProbeForecast& forecast) const;

 private:
  GraphMethod soonest(const ProbeForecast& forecast, CellsWork work) const;

  const GraphProblem problem_;
  const DeviceKind device_;  // the device whose costs are compared
  const bool blurs_;         // false: products are assumed to be exact
  CellsParams params_;
  const int64_t begins_;
  bool may_descend_ = false;
};

// The device that builds a graph of such rows in host memory or files, if the caller did not choose one.
Device graph_device(const RowsInfo& x, const KnnGraphParams& params, const Resources& resources);

// The settings of the method cells for these parameters and number of rows.
CellsParams cells_params(int64_t rows, const KnnGraphParams& params);

// The cost of that many products, including copying the rows to a GPU.
Counts graph_counts(const std::vector<MatrixView>& rows, double products);

}  // namespace kith
