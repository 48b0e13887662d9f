// Exact range search: for every query all rows of the base within a radius, nearest first.
//
// The radius is in the metric's unit and inclusive: distance <= radius, or >= for inner_product. Distances and order
// are those of knn(): by (distance, row). Results are counted before their memory is allocated; if they do not fit the
// limit, the call counts the rest and throws OutOfMemory with the bytes needed. A result takes 12 bytes, and up to 24
// while results are assembled.
//
// Queries and base may each be in host memory or in that of the CUDA device that searches, and so may the result
// (RangeParams::result_space). On a device a result takes up to 24 bytes more while results are assembled, or the host
// does that if the device has no room. The result is complete when the call returns; in a device's memory, in the order
// of the resources' stream, if they name one.
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

// Allocates device memory for `count` values of `bytes_each` bytes (8 for offsets and ids, 4 for distances).
// Called on the searching thread once the number of results is known; the result keeps what it returns
// alive.
using RangeAllocator = std::function<std::shared_ptr<void>(int64_t count, int64_t bytes_each)>;

struct RangeParams {
  float radius = 0;
  Metric metric = Metric::l2;
  bool check_finite = true;  // refuse NaN and infinities, naming the row; off, NaN distances are never in range
  RowFilter filter = {};     // the rows that may be found; default: all
  MemorySpace result_space = MemorySpace::host();  // or that of the CUDA device that searches
  RangeAllocator allocate = {};                    // for results on a device; default: Kith's own memory

  KITH_EXPORT void validate() const;
};

// Results in host memory; those of query q are entries offsets[q] .. offsets[q + 1] - 1 of ids and distances.
struct RangeView {
  const int64_t* offsets = nullptr;  // queries + 1 values, the first is 0
  const int64_t* ids = nullptr;
  const float* distances = nullptr;
  int64_t queries = 0;

  int64_t size() const { return queries == 0 ? 0 : offsets[queries]; }
};

class RangeNeighbors {
 public:
  RangeNeighbors() = default;
  // Room for `found` results of all queries together.
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
  std::shared_ptr<void> on_device_[3];  // the three arrays of a result on a device
  int64_t queries_ = 0;
  int64_t found_ = 0;  // results on a device
  MemorySpace space_;
};

KITH_EXPORT RangeNeighbors range_search(const MatrixView& queries, const MatrixView& base, const RangeParams& params,
                                        const Resources& resources = Resources());

// From files that may be larger than memory, with results that may be too: those of as many queries as fit
// are kept at a time. `sink` receives the results of consecutive queries, in order, valid until it
// returns.
using RangeSink = std::function<void(int64_t first_query, const RangeView& part)>;
KITH_EXPORT void range_search(const VectorFile& queries, const VectorFile& base, const RangeSink& sink,
                              const RangeParams& params, const Resources& resources = Resources());

}  // namespace kith
