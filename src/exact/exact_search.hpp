// Exact search as every caller needs it: what a filter leaves of the base, the device, the plan, the loop. For k-NN and
// for range search, over arrays, files and indexes.
#pragma once

#include <kith/row_filter.hpp>

#include "exact/base_set.hpp"
#include "exact/knn_loop.hpp"
#include "rows/kept_rows.hpp"

namespace kith {

struct SearchInput {
  RowSource& queries;
  BaseSet& base;
  const RowFilter& filter;
  const custom::TileMetric* metric = nullptr;  // a custom one, for a GPU
};

// `problem` describes queries and base as they are; its k is settled here, where the filter may leave fewer rows.
void search_knn(KnnProblem problem, const SearchInput& input, KnnOutput& output, const Resources& resources);

// How a filter that keeps so many rows is applied. `prepared`: the base has, or would have, a layout for the device.
FilterPath filter_path(const KnnProblem& problem, int64_t kept, Device device, bool prepared);

// A search with its filter, device and plan settled.
class PlannedSearch {
 public:
  // Changes the problem to what is left of it. False from anything_left() means that nothing can be found.
  PlannedSearch(KnnProblem* problem, const SearchInput& input, const Resources& resources);
  bool anything_left() const { return anything_left_; }

  const PlannedKnn& planned() const { return planned_; }
  KnnInput input() const;

 private:
  void plan(FilterPath path, Device device, const Resources& resources);
  void check_gathered(const MatrixView& rows, int64_t first_row) const;

  KnnProblem* problem_;
  const SearchInput& search_;
  KeptRows kept_;
  bool anything_left_ = false;
  bool base_checked_ = false;  // gathered rows need no look
  PlannedKnn planned_;
};

}  // namespace kith
