// Exact range search: for every query all rows of the base within a radius, nearest first.
//
// The radius is in the metric's unit and included: distance <= radius, or >= for inner_product. Distances are those
// that knn() reports, and rows are ordered as there, by (distance, row). Rows are counted before memory for the result
// is taken; where the limit has no room for them the call goes on counting and is OutOfMemory with the bytes it needs.
// A row found takes up to 24 bytes while results are put together and 12 in the end.
//
// Queries and base may lie in host memory or, each for itself, in that of the CUDA device that searches. So may the
// result, by RangeParams::result_space; there a row found takes up to 24 bytes more of the device's memory while
// results are put together, or that of the host where the device has no room. It is complete when the call returns; in
// a device's memory in the order of the resources' stream, where that is the caller's.
#pragma once

#include <kith/export.hpp>
#include <kith/host_buffer.hpp>
#include <kith/metric.hpp>
#include <kith/resources.hpp>
#include <kith/row_filter.hpp>
#include <kith/vector_file.hpp>
#include <kith/view.hpp>

#include <cstdint>
#include <functional>
#include <memory>

namespace kith {

// Memory of the caller's for the parts of a result on a device: so many values of so many bytes each (8 for offsets and
// ids, 4 for distances). Called when it is known how many rows were found, on the thread that searches; what it returns
// is kept as long as the result.
using RangeAllocator = std::function<std::shared_ptr<void>(int64_t count, int64_t bytes_each)>;

struct RangeParams {
  float radius = 0;
  Metric metric = Metric::l2;
  bool check_finite = true;  // refuse NaN and infinities, naming the row; without it a NaN distance is never in range
  RowFilter filter = {};     // the rows that may be found; without one, all
  MemorySpace result_space = MemorySpace::host();  // or the memory of the CUDA device that searches
  RangeAllocator allocate = {};                    // of memory there; without one it is Kith's own

  KITH_EXPORT void validate() const;
};

// The rows found for query q are entries offsets[q] .. offsets[q + 1] - 1 of ids and distances. In host memory.
struct RangeView {
  const int64_t* offsets = nullptr;  // queries + 1, the first is 0
  const int64_t* ids = nullptr;
  const float* distances = nullptr;
  int64_t queries = 0;

  int64_t size() const { return queries == 0 ? 0 : offsets[queries]; }
};

class RangeNeighbors {
 public:
  RangeNeighbors() = default;
  // Room for `found` rows of all queries together.
  RangeNeighbors(int64_t queries, int64_t found, const Resources& resources)
      : offsets_((queries + 1) * static_cast<int64_t>(sizeof(int64_t)), "the ranges' offsets", resources),
        ids_(found * static_cast<int64_t>(sizeof(int64_t)), "the ids of the rows in range", resources),
        distances_(found * static_cast<int64_t>(sizeof(float)), "the distances of the rows in range", resources),
        queries_(queries) {}

  // The same in the memory of a CUDA device.
  KITH_EXPORT RangeNeighbors(int64_t queries, int64_t found, MemorySpace space, const RangeAllocator& allocate,
                             const Resources& resources);

  int64_t queries() const { return queries_; }
  int64_t size() const { return on_device() ? found_ : view().size(); }
  MemorySpace space() const { return space_; }
  int64_t* offsets() const { return on_device() ? static_cast<int64_t*>(on_device_[0].get()) : offsets_.as<int64_t>(); }
  int64_t* ids() const { return on_device() ? static_cast<int64_t*>(on_device_[1].get()) : ids_.as<int64_t>(); }
  float* distances() const { return on_device() ? static_cast<float*>(on_device_[2].get()) : distances_.as<float>(); }
  // Only for results in host memory.
  RangeView view() const { return {offsets(), ids(), distances(), queries_}; }

 private:
  bool on_device() const { return !space_.host_readable(); }

  HostBuffer offsets_;
  HostBuffer ids_;
  HostBuffer distances_;
  std::shared_ptr<void> on_device_[3];  // in the place of these
  int64_t queries_ = 0;
  int64_t found_ = 0;  // on a device
  MemorySpace space_;
};

KITH_EXPORT RangeNeighbors range_search(const MatrixView& queries, const MatrixView& base, const RangeParams& params,
                                        const Resources& resources = Resources());

// From files that may be larger than memory, and with results that may be: only the rows of as many queries as fit are
// kept at a time. `sink` gets the results of consecutive queries, in order; what it is given
// lives until it returns.
using RangeSink = std::function<void(int64_t first_query, const RangeView& part)>;
KITH_EXPORT void range_search(const VectorFile& queries, const VectorFile& base, const RangeSink& sink,
                              const RangeParams& params, const Resources& resources = Resources());

}  // namespace kith
