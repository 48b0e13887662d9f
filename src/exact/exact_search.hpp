// Exact search as every caller needs it: what a filter leaves of the base, the device, the plan, the loop. For k-NN and
// for range search, over arrays, files and indexes.
#pragma once

#include <kith/knn.hpp>
#include <kith/row_filter.hpp>

#include "exact/knn_plan.hpp"
#include "exact/search_backend.hpp"
#include "rows/row_source.hpp"

#include <cstdint>

namespace kith {

// The layouts that an index keeps of the rows that a search goes over: of a base in blocks, each of which has, or can
// get, one for each device.
class BaseLayouts {
 public:
  virtual ~BaseLayouts() = default;
  // Whether layouts are made at all.
  virtual bool can_prepare() const = 0;
  // Finds the layouts for the device, or makes them; false where some rows have none.
  virtual bool prepare(const SearchTask& task, Device device, const Resources& resources) = 0;
  // After prepare(): that of the block that holds the row, or null.
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
class SettledSearch {
 public:
  SettledSearch(const SearchShape& shape, const SearchWish& wish, const SearchInput& input, const Resources& resources);
  // With a plan of the caller's, for all rows.
  SettledSearch(const SearchTask& task, PlannedKnn planned, const SearchInput& input);

  // False where nothing can be found: then there is no plan.
  bool anything_to_find() const { return task_.shape.queries > 0 && kept_.count() > 0; }
  const SearchTask& task() const { return task_; }
  const KnnPlan& plan() const { return plan_of(planned_.plan); }
  template <typename DevicePlan>
  const DevicePlan& plan_as() const {
    return std::get<DevicePlan>(planned_.plan);
  }
  // With the memory that the plan has reserved.
  const Resources& resources() const { return planned_.resources(); }
  // With what the limits have left beside that.
  const Resources& beyond() const { return planned_.memory->beyond(); }
  // What a filter leaves of the rows that are walked over, where they are masked or, on a GPU, listed; else null.
  const KeptRows* kept() const;
  // The ids of the rows that are walked over, where they are not 0, 1, 2, ...
  const uint32_t* numbers() const { return task_.gathers() ? kept_.list() : nullptr; }
  const custom::TileMetric* metric() const { return input_.metric; }
  // Whether an index may yet lay out its rows for this search.
  bool prepares() const { return input_.layouts != nullptr && !task_.prepared; }
  // Opens queries and base for reading, before the first batch of up to so many queries.
  void open(int64_t batch) const;
  // Gives a backend the queries from number `first` on, and all rows that are gone over, in ascending order: whole
  // blocks where they are prepared, else at most a chunk at a time.
  void scan(SearchBackend& backend, int64_t first, int64_t count, ProgressMeter& meter) const;
  // After the search: its memory may serve the results.
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
void search_knn(const SearchShape& shape, const SearchWish& wish, const SearchInput& input, const NeighborsView& out,
                const Resources& resources);
void search_knn(const SearchShape& shape, const SearchWish& wish, const SearchInput& input, const NeighborsSink& sink,
                const Resources& resources);
// The same once it is settled; there is something to find.
void search_knn(const SettledSearch& search, const NeighborsView& out);

}  // namespace kith
