// A graph by the method that its parameters name or that takes least time, for who builds one inside a larger call.
#pragma once

#include <kith/knn_graph.hpp>

#include "core/machine_model.hpp"
#include "graph/build/cells/cell_params.hpp"
#include "graph/build/cells/probe_forecast.hpp"
#include "graph/build/method/method_choice.hpp"
#include "rows/rows_info.hpp"

#include <vector>

namespace kith {

// Fills `out`. A row that is refused is one of "base". Time and peaks are the caller's to report. `share`: of a rank among
// several, on CPUs, which all fill theirs.
GraphReport build_graph(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params,
                        const Resources& resources, const GraphBounds& most = {}, const GraphShare* share = nullptr);
// knn_graph() with such a share, or none.
KnnGraph knn_graph_of(const MatrixView& x, const KnnGraphParams& params, const GraphShare* share,
                      const Resources& resources);
GraphReport knn_graph_of(const MatrixView& x, const NeighborsView& out, const KnnGraphParams& params,
                         const GraphShare* share, const Resources& resources);

// Which method is soonest on rows of which more and more is foreseen: before cells are learned, once they are, and once
// all rows are cut into them. Exact search is soonest where it is even if one probe were enough, or if all cells were
// alike, which makes the fewest pairs; both take products to tell as much of all rows as of the control rows.
class SoonestMethod {
 public:
  // `builds`: the device that does.
  SoonestMethod(const GraphProblem& problem, const KnnGraphParams& params, DeviceKind builds);

  // Cells with as many probes as they may make.
  const CellsWish& wish() const { return wish_; }
  // Whether NN-Descent may be soonest, and the probes that it begins with.
  bool may_descend() const { return may_descend_; }
  int64_t begins() const { return begins_; }
  // Whether all pairs are too many to be compared unasked.
  bool exact_is_refused() const;

  // `blur` as CellsWork has it.
  GraphMethod before_cut(const ProbeForecast& forecast, double blur) const;
  GraphMethod after_cut(const ProbeForecast& forecast, int64_t pairs, double blur) const;
  // Where all cells have as many rows.
  CellsWork least_work(const ProbeForecast& forecast) const;

 private:
  GraphMethod soonest(const ProbeForecast& forecast, CellsWork work) const;

  const GraphProblem problem_;
  const DeviceKind device_;  // whose costs decide
  const bool blurs_;         // else it is judged by exact products
  CellsWish wish_;
  const int64_t begins_;
  bool may_descend_ = false;
};

// The device that builds a graph of such rows in host memory or files, where the caller leaves it to us.
Device graph_device(const RowsInfo& x, const KnnGraphParams& params, const Resources& resources);

// The cells that parameters of the method cells ask for in so many rows.
CellsWish cells_wish(int64_t rows, const KnnGraphParams& params);

// What comparing so many pairs of values amounts to, with the rows that a GPU has to be brought.
Counts graph_counts(const std::vector<MatrixView>& rows, double products);

}  // namespace kith
