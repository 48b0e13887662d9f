// What a backend does for exact search; the loop around it (exact_search) is the same for all.
//
//   begin(queries)                 a batch of queries; its neighbours are empty
//   scan(base, first_row, ready)   rows first_row, first_row + 1, ... of the base, in ascending order of calls
//   finish(neighbors)              queries x k packed neighbours (core/ordered_key.hpp), each row sorted
//   finish_on_device(out)          the same as ids and distances, to the memory of the backend's device
//
// Queries given to begin() stay valid until finish(), the rows of a scan() until it returns.
#pragma once

#include <kith/neighbors.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/parallel_for.hpp"
#include "exact/knn_plan_cpu.hpp"
#include "exact/knn_plan_cuda.hpp"
#include "exact/prepared_base.hpp"
#include "exact/search_task.hpp"
#include "rows/kept_rows.hpp"

#include <cstdint>
#include <memory>

namespace kith {

namespace custom {
struct TileMetric;
}

class KnnBackend {
 public:
  virtual ~KnnBackend() = default;
  virtual void begin(const MatrixView& queries, int64_t first_query) = 0;
  virtual void scan(const MatrixView& base, int64_t first_row, const PreparedBase* ready, ProgressMeter& meter) = 0;
  virtual void finish(uint64_t* neighbors) = 0;
  virtual void finish_on_device(const NeighborsView& out);  // InvalidState, where there is no such memory
};

// `plan` was made for the task and for this device. `kept` is what a filter leaves of the rows scanned, where they
// are masked or, on a GPU, listed; else null.
std::unique_ptr<KnnBackend> make_knn_cpu(const SearchTask& task, const KnnCpuPlan& plan, const KeptRows* kept,
                                         const Resources& resources);
// `metric` gives the keys where they are the caller's.
std::unique_ptr<KnnBackend> make_knn_cuda(const SearchTask& task, const KnnCudaPlan& plan, const KeptRows* kept,
                                          const custom::TileMetric* metric, const Resources& resources);

// All rows, by the metric of the shape.
inline std::unique_ptr<KnnBackend> make_knn_cuda(const SearchTask& task, const KnnCudaPlan& plan,
                                                 const Resources& resources) {
  return make_knn_cuda(task, plan, nullptr, nullptr, resources);
}

// Padding for every query, to the memory of the device that `out` lies on.
void write_nothing_cuda(Metric metric, const NeighborsView& out, const Resources& resources);

}  // namespace kith
