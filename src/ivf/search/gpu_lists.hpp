// Inverted lists in the memory of a GPU and their search there. For code that is compiled with and without CUDA;
// without it every function is Unsupported.
//
// Every segment is searched by itself, and what was found in each is brought together: so an add costs its own rows,
// and nothing is copied to make segments one.
//
// Memory: the segments (list_segment.hpp), up to 4 bytes a vector more that the first search computes
// (prepare_lists_cuda.hpp), the model (gpu_model_cuda.hpp); for a search what plan_ivf_search says and 12 bytes a probe
// and up to 24 a neighbour for each query, as many queries at a time as there is room for.
#pragma once

#include <kith/neighbors.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "kernels/select/range_hits.hpp"
#include "ivf/model/ivf_model.hpp"
#include "ivf/search/ivf_search.hpp"
#include "ivf/segment/segment_copies.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace kith {

class GpuLists {
 public:
  virtual ~GpuLists() = default;

  // As search_ivf(). `least`: min(k, kept vectors), of which a query's lists must hold so many; 0 where it is known that
  // all do, which saves a look at them. Queries are f32, on the host or on that device, and so is `out`, of search.k
  // neighbours; what it gets are rows. Returns when it is done.
  virtual void search(const MatrixView& queries, const IvfSearch& search, int64_t least, bool check_finite,
                      const NeighborsView& out, const Resources& resources) const = 0;

  // All vectors in range in the queries' lists, as range_search_ivf() has them, query by query. Queries as above.
  virtual void range_search(const MatrixView& queries, const IvfRange& range, bool check_finite, RangeHits& hits,
                            const Resources& resources) const = 0;
};

// What the device lacks of the segments and the model comes to it. OutOfMemory where it has no room.
std::shared_ptr<const GpuLists> gpu_lists(int device, const std::shared_ptr<const IvfModel>& model,
                                          const std::vector<SharedSegment>& segments, const Resources& resources);

}  // namespace kith
