// Exact search for all callers: applies the filter, chooses the device and the plan, runs the loop. For k-NN and range
// search, over arrays, files and indexes.
#pragma once

#include <kith/knn.hpp>
#include <kith/row_filter.hpp>

#include "exact/knn_plan.hpp"
#include "exact/search_backend.hpp"
#include "rows/row_source.hpp"

#include <cstdint>

namespace kith {

// The prepared layouts of an index, which is a base in blocks; each
// block has, or can get, one layout for each device.
class BaseLayouts {
 public:
  virtual ~BaseLayouts() = default;
  // Whether the index may make layouts.
  virtual bool can_prepare() const = 0;
  // Finds or makes the layouts for the device; false if some rows have none.
  virtual bool prepare(const SearchTask& task, Device device, const Resources& resources) = 0;
  // The layout of the block that holds the row, or null. After prepare().
  virtual const PreparedBase* of(int64_t row) const = 0;
};

struct SearchInput {
  RowSource& queries;
  RowSource& base;
  const RowFilter& filter;
  BaseLayouts* layouts = nullptr;              // that an index keeps of the base
  const custom::TileMetric* metric = nullptr;  // a custom one, for a GPU
};

// How a filter that keeps so many rows is applied. `prepared`: the base has, or would have, a layout for the device;
// `cpu` is what searches where that is the CPU.
FilterPath filter_path(const SearchTask& task, int64_t kept, Device device, bool prepared, const CpuExtensions& cpu);

// A planned search: filter, device and plan are chosen. Referenced objects must outlive it.
class PlannedSearch {
 public:
  PlannedSearch(const SearchShape& shape, const SearchRequest& request, const SearchInput& input,
                const Resources& resources);
  // Takes the caller's plan; without a filter.
  PlannedSearch(const SearchTask& task, PlannedKnn planned, const SearchInput& input);

  // False if there are no queries or no rows: then there is no plan.
  bool anything_to_find() const { return task_.shape.queries > 0 && kept_.count() > 0; }
  const SearchTask& task() const { return task_; }
  const KnnPlan& plan() const { return plan_of(planned_.plan); }
  template <typename DevicePlan>
  const DevicePlan& plan_as() const {
    return std::get<DevicePlan>(planned_.plan);
  }
  // Limited to the memory that the plan has reserved.
  const Resources& resources() const { return planned_.resources(); }
  // For memory beyond that, as far as the limits allow.
  const Resources& beyond() const { return planned_.memory->beyond(); }
  // The kept rows if scanned rows are masked or, on a GPU, listed; null otherwise.
  const KeptRows* kept() const;
  // The original numbers of the scanned rows if these are gathered; null otherwise.
  const uint32_t* numbers() const { return task_.gathers() ? kept_.list() : nullptr; }
  const custom::TileMetric* metric() const { return input_.metric; }
  // Whether an index may yet lay out its rows for this search.
  bool prepares() const { return input_.layouts != nullptr && !task_.prepared; }
  // Opens queries and base for reading, before the first batch of up to so many queries.
  void open(int64_t batch) const;
  // Passes `count` queries from number `first` on to a backend, then all scanned rows in ascending order: whole blocks
  // if they are prepared, otherwise at most a chunk at a time.
  void scan(SearchBackend& backend, int64_t first, int64_t count, ProgressMeter& meter) const;
  // Frees the plan's memory after the search, so that results can use it.
  void give_memory_back() { planned_ = PlannedKnn(); }

 private:
  void make_plan(FilterPath path, bool prepared, Device device, const Resources& resources);
  void scan_gathered(SearchBackend& backend, ProgressMeter& meter) const;

  const SearchInput& input_;
  SearchTask task_;
  KeptRows kept_;
  PlannedKnn planned_;
};

// The loop of every k-NN search, on every device: batches of queries, pieces of the base, results out.
// Results of all queries go to the caller's arrays, or batch by batch to a sink.
void search_knn(const SearchShape& shape, const SearchRequest& request, const SearchInput& input,
                const NeighborsView& out, const Resources& resources);
void search_knn(const SearchShape& shape, const SearchRequest& request, const SearchInput& input,
                const NeighborsSink& sink, const Resources& resources);
// The same for a planned search with something to find.
void search_knn(const PlannedSearch& search, const NeighborsView& out);

}  // namespace kith
