// Exact range search: for every query all rows of the base within a radius, nearest first.
//
// The radius is in the metric's unit and included: distance <= radius, or >= for inner_product. Distances are those
// that knn() reports, and rows are ordered as there, by (distance, row). Rows are counted before memory for the result
// is taken; where the limit has no room for them the call goes on counting and is OutOfMemory with the bytes it needs.
// A row found takes up to 24 bytes while results are put together and 12 in the end.
//
// Queries and base may lie in host memory or, each for itself, in that of the CUDA device that searches; the result is
// in host memory, and complete when the call returns.
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

namespace kith {

struct RangeParams {
  float radius = 0;
  Metric metric = Metric::l2;
  bool check_finite = true;  // refuse NaN and infinities, naming the row; without it a NaN distance is never in range
  RowFilter filter = {};     // the rows that may be found; without one, all

  KITH_EXPORT void validate() const;
};

// The rows found for query q are entries offsets[q] .. offsets[q + 1] - 1 of ids and distances.
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

  int64_t queries() const { return queries_; }
  int64_t size() const { return view().size(); }
  int64_t* offsets() const { return offsets_.as<int64_t>(); }
  int64_t* ids() const { return ids_.as<int64_t>(); }
  float* distances() const { return distances_.as<float>(); }
  RangeView view() const { return {offsets(), ids(), distances(), queries_}; }

 private:
  HostBuffer offsets_;
  HostBuffer ids_;
  HostBuffer distances_;
  int64_t queries_ = 0;
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
