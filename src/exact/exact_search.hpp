// Exact search as every caller needs it: what a filter leaves of the base, the device, the plan, the loop. For k-NN and
// for range search, over arrays, files and indexes.
#pragma once

#include <kith/row_filter.hpp>

#include "exact/knn_loop.hpp"
#include "exact/search_base.hpp"
#include "exact/search_task.hpp"
#include "rows/kept_rows.hpp"

namespace kith {

struct SearchInput {
  RowSource& queries;
  SearchBase base;
  const RowFilter& filter;
  const custom::TileMetric* metric = nullptr;  // a custom one, for a GPU
};

void search_knn(const SearchShape& shape, const SearchWish& wish, const SearchInput& input, KnnOutput& output,
                const Resources& resources);

// How a filter that keeps so many rows is applied. `prepared`: the base has, or would have, a layout for the device;
// `cpu` is what searches where that is the CPU.
FilterPath filter_path(const SearchTask& task, int64_t kept, Device device, bool prepared, const CpuExtensions& cpu);

// A search whose filter, device and plan are settled. What is referred to must outlive it.
class SettledSearch {
 public:
  SettledSearch(const SearchShape& shape, const SearchWish& wish, const SearchInput& input, const Resources& resources);

  // False where nothing can be found: then there is no plan.
  bool anything_to_find() const { return task_.shape.queries > 0 && kept_.count() > 0; }
  const SearchTask& task() const { return task_; }
  const PlannedKnn& planned() const { return planned_; }
  KnnInput input() const;
  // The ids of the rows that are walked over, where they are not 0, 1, 2, ...
  const uint32_t* numbers() const { return task_.gathers() ? kept_.list() : nullptr; }
  // Whether an index may yet lay out its rows for this search.
  bool prepares() const { return input_.base.layouts != nullptr && !task_.scope.prepared; }
  // After the search: its memory may serve the results.
  void give_memory_back() { planned_ = PlannedKnn(); }

 private:
  void plan(FilterPath path, bool prepared, Device device, const Resources& resources);
  void walk(const BaseStep& step) const;
  void walk_gathered(const BaseStep& step) const;

  const SearchInput& input_;
  SearchTask task_;
  KeptRows kept_;
  PlannedKnn planned_;
};

}  // namespace kith
