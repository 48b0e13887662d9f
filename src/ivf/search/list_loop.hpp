// The loop of every search of lists, on every device, over batches of queries. A device implements:
//
//   ListSearcher   lists on a device, prepared for a search: plans rounds and begins them
//   ListsBackend   a round: batches of queries, each searching the nearest of a number of ranked lists
//
//     load(queries, numbers)   a batch of queries, as f32
//     rank()                   each query's nearest lists; queries whose lists hold too few vectors are left out
//     nearest(neighbors)       queries x k packed neighbours (core/ordered_key.hpp), sorted and padded
//     within(hits)             all vectors in range
//
// Queries whose lists hold too few vectors are searched again with four times as many ranked lists, each using the
// least number of them that hold enough; until no such query is left.
#pragma once

#include <kith/error.hpp>
#include <kith/metric.hpp>
#include <kith/neighbors.hpp>
#include <kith/range_search.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/parallel_for.hpp"
#include "core/planned.hpp"
#include "core/reused_memory.hpp"
#include "exact/knn_plan_cuda.hpp"
#include "ivf/scan/list_product.hpp"
#include "ivf/search/ivf_search.hpp"
#include "ivf/search/ivf_search_plan.hpp"
#include "kernels/select/range_hits.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

namespace kith {

// Queries searched with the same number of ranked lists.
struct ListsRound {
  int64_t queries = 0;
  int64_t slots = 0;   // ranked lists per query
  bool again = false;  // a retry of queries with too few vectors: their numbers are not contiguous
  DType dtype = DType::f32;
  MemorySpace query_space = {};
  MemorySpace result_space = {};
};

struct ListsBatches {
  int64_t query_batch = 0;
  int64_t host_bytes = 0;
  int64_t device_bytes = 0;
};
struct ListsCpuPlan : ListsBatches {
  ListProductShape scan;
};
struct ListsCudaPlan : ListsBatches {
  bool ranks_few = false;              // one launch ranks the lists
  std::optional<KnnCudaPlan> ranking;  // of lists by their centres; none: one launch does, or there is one list without
  std::vector<IvfSearchPlan> parts;    // per segment, for nearest neighbours
  int64_t scan_bytes = 0;              // of the largest part
  int64_t hits = 0;                    // capacity for range hits
};
using ListsPlan = std::variant<ListsCpuPlan, ListsCudaPlan>;

inline const ListsBatches& batches_of(const ListsPlan& plan) {
  return std::visit([](const auto& of) -> const ListsBatches& { return of; }, plan);
}
inline Footprint bytes_of(const ListsPlan& plan) {
  return {batches_of(plan).host_bytes, batches_of(plan).device_bytes};
}

class ListsBackend : public InReusedMemory {
 public:
  virtual ~ListsBackend() = default;
  // The queries with these numbers, ascending. On the host they may be of any dtype, on a GPU they are f32.
  virtual void load(const MatrixView& queries, std::span<const uint32_t> numbers) = 0;
  // The places in the batch of queries whose ranked lists hold too few vectors, ascending: nothing is found for them.
  virtual std::vector<uint32_t> rank() = 0;
  virtual void nearest(uint64_t* neighbors, ProgressMeter& meter) = 0;
  // The same as ids and distances, to the queries' places in the memory of the backend's device.
  virtual void nearest_on_device(const NeighborsView&, ProgressMeter&) {
    throw InvalidState("this backend has no device memory to write to");
  }
  virtual void within(RangeHits& hits, ProgressMeter& meter) = 0;
};

class ListSearcher {
 public:
  virtual ~ListSearcher() = default;
  virtual const IvfSearch& task() const = 0;
  virtual Metric metric() const = 0;
  virtual int64_t lists() const = 0;
  // The least memory of a search that begins with `first`.
  virtual Footprint least(const ListsRound& first) const = 0;
  virtual PlanWithin<ListsPlan> plan(const ListsRound& round, const PlanBudget& budget) const = 0;
  virtual std::unique_ptr<ListsBackend> begin(const ListsRound& round, const ListsPlan& plan,
                                              const Resources& planned) const = 0;
};

// The nearest rows of every query, with distances in the metric's unit, in the memory of `out`. Queries in host memory
// may be of any dtype, those on a GPU must be f32.
void search_lists(const ListSearcher& searcher, const MatrixView& queries, const NeighborsView& out,
                  const Resources& resources);

// All vectors in range in the queries' lists. Throws OutOfMemory, naming a sufficient limit, if there is no room for
// them.
RangeNeighbors range_search_lists(const ListSearcher& searcher, const MatrixView& queries, const Resources& resources);

}  // namespace kith
