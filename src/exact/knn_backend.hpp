// What a backend does for exact search; the loop around it (knn_loop) is the same for all.
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
#include "exact/knn_plan.hpp"
#include "rows/kept_rows.hpp"

#include <cstdint>
#include <memory>

namespace kith {

namespace custom {
struct TileMetric;
}

// A base laid out for one backend ahead of the search: norms, packed panels, a copy in device memory.
class PreparedBase {
 public:
  virtual ~PreparedBase() = default;
  // Whether queries of this type can be searched in it, on the processor as it is used now.
  virtual bool serves(DType) const { return true; }
  // What it takes, in the memory of the device that it was made for.
  virtual int64_t bytes() const = 0;
};

class KnnBackend {
 public:
  virtual ~KnnBackend() = default;
  virtual void begin(const MatrixView& queries, int64_t first_query) = 0;
  virtual void scan(const MatrixView& base, int64_t first_row, const PreparedBase* ready, ProgressMeter& meter) = 0;
  virtual void finish(uint64_t* neighbors) = 0;
  virtual void finish_on_device(const NeighborsView& out);  // InvalidState, where there is no such memory
};

// `plan` was made for the problem and for this device. `kept` is what a filter leaves of the rows scanned, where they
// are masked or, on a GPU, listed; else null.
std::unique_ptr<KnnBackend> make_knn_cpu(const KnnProblem& problem, const KnnPlan& plan, const KeptRows* kept,
                                         const Resources& resources);
// `metric` gives the keys of a problem with a custom one.
std::unique_ptr<KnnBackend> make_knn_cuda(const KnnProblem& problem, const KnnPlan& plan, const KeptRows* kept,
                                          const custom::TileMetric* metric, const Resources& resources);

// All rows, by the problem's own metric.
inline std::unique_ptr<KnnBackend> make_knn_cuda(const KnnProblem& problem, const KnnPlan& plan,
                                                 const Resources& resources) {
  return make_knn_cuda(problem, plan, nullptr, nullptr, resources);
}

// Padding for every query, to the memory of the device that `out` lies on.
void write_nothing_cuda(Metric metric, const NeighborsView& out, const Resources& resources);

// Checks for NaN and infinities where `check_finite`, naming the row from `first_row` on.
struct PrepareOptions {
  Metric metric = Metric::l2;
  DType queries = DType::f32;  // that will be searched for
  bool check_finite = true;
  int64_t first_row = 0;
};
std::shared_ptr<PreparedBase> prepare_base_cpu(const MatrixView& base, const PrepareOptions& options,
                                               const Resources& resources);
std::shared_ptr<PreparedBase> prepare_base_cuda(int device, const MatrixView& base, const PrepareOptions& options,
                                                const Resources& resources);

}  // namespace kith
