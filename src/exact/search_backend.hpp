// What a backend does for exact search; the loops around it (exact_search, range_loop) are the same for all.
//
//   begin(queries)                 a batch of queries, for which nothing is found yet
//   scan(base, first_row, ready)   rows first_row, first_row + 1, ... of the base, in ascending order of calls
//
// Then, of the nearest:
//   finish(neighbors)              queries x k packed neighbours (core/ordered_key.hpp), each row sorted
//   finish_on_device(out)          the same as ids and distances, to the memory of the backend's device
// and of the rows in range:
//   finish()                       what was found, each query's rows sorted; the store is empty
//
// Queries given to begin() stay valid until finish(), the rows of a scan() until it returns.
#pragma once

#include <kith/neighbors.hpp>
#include <kith/range_search.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/parallel_for.hpp"
#include "core/reused_memory.hpp"
#include "exact/knn_plan_cpu.hpp"
#include "exact/knn_plan_cuda.hpp"
#include "exact/prepared_base.hpp"
#include "exact/search_task.hpp"
#include "kernels/select/range_hits.hpp"
#include "rows/kept_rows.hpp"

#include <cstdint>
#include <memory>

namespace kith {

class PlannedSearch;
namespace custom {
struct TileMetric;
}

class SearchBackend : public InReusedMemory {
 public:
  virtual ~SearchBackend() = default;
  virtual void begin(const MatrixView& queries, int64_t first_query) = 0;
  virtual void scan(const MatrixView& base, int64_t first_row, const PreparedBase* ready, ProgressMeter& meter) = 0;
};

class KnnBackend : public SearchBackend {
 public:
  virtual void finish(uint64_t* neighbors) = 0;
  virtual void finish_on_device(const NeighborsView& out);  // InvalidState, where there is no such memory
};

// `plan` was made for the task and for this device. `kept` is what a filter leaves of the rows scanned, where they
// are masked or, on a GPU, listed; else null.
std::unique_ptr<KnnBackend> make_knn_cpu(const SearchTask& task, const KnnCpuPlan& plan, const KeptRows* kept,
                                         const Resources& resources);

// What a search on a GPU may be given beside its plan.
struct KnnCudaExtras {
  const KeptRows* kept = nullptr;
  const custom::TileMetric* metric = nullptr;  // gives the keys where they are the caller's
  const Resources* beyond = nullptr;           // what queries that products are not sure of may take beyond the plan
};
std::unique_ptr<KnnBackend> make_knn_cuda(const SearchTask& task, const KnnCudaPlan& plan, const KnnCudaExtras& extras,
                                          const Resources& resources);

// All rows, by the metric of the shape.
inline std::unique_ptr<KnnBackend> make_knn_cuda(const SearchTask& task, const KnnCudaPlan& plan,
                                                 const Resources& resources) {
  return make_knn_cuda(task, plan, KnnCudaExtras(), resources);
}

// Padding for every query, to the memory of the device that `out` lies on.
void write_nothing_cuda(Metric metric, const NeighborsView& out, const Resources& resources);

// Where results that stay on a device go: offsets of all queries, and room for what was counted.
struct RangeOnDevice {
  int64_t* offsets = nullptr;
  int64_t* ids = nullptr;
  float* distances = nullptr;
};

// Where the memory limit has no room for what is found, it is only counted from then on.
class RangeBackend : public SearchBackend {
 public:
  virtual CollectedHits finish(ProgressMeter& meter) = 0;

  // Instead of finish(): fills the offsets of the batch's queries and calls use(query, its neighbours, sorted, how
  // many) for each that has some, on several threads at once. False where the backend does not, or has no memory to.
  virtual bool hand_out(int64_t*, const SortedUse&, ProgressMeter&) { return false; }

  // The same into a device's memory, where that was wished for: all queries' at once. False where there is no memory to
  // put them together. The device may begin to while a caller's memory is made for them.
  virtual void begin_finish_on_device() {}
  virtual bool finish_on_device(const RangeOnDevice& out);

  // Whether some rows were only counted.
  virtual bool overflowed() const = 0;
  // How many came since the store was emptied.
  virtual int64_t counted() const = 0;
  virtual void clear() = 0;
  // Counts from now on.
  virtual void only_count() = 0;
};

// Rows with keys up to `most` are in range. They are kept in memory of `results`, which the plan does not count.
std::unique_ptr<RangeBackend> make_range_cpu(const PlannedSearch& search, float most, const Resources& results);
std::unique_ptr<RangeBackend> make_range_cuda(const PlannedSearch& search, float most, const Resources& results);

// A result from the host to a device's memory; waits.
void write_range_cuda(const RangeView& found, const RangeOnDevice& out, int device, const Resources& resources);

}  // namespace kith
