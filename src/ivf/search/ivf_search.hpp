// Search of an inverted file.
//
// The result: the first k by (distance, row) of all vectors in the `probes` nearest lists of a query, where the
// distance is that of knn() between the query and the stored vector. Lists are ranked by (key of the metric to the
// centre, list). If these lists hold fewer than min(k, kept) kept vectors, just as many further lists are searched as
// needed; a range search only searches its lists. If a filter keeps fewer rows than the probed lists would hold, all
// lists are searched (kept_decide). Tables, fp16 values and bounds only rule out vectors: the result is the same for
// any number of threads, batch, segment, memory limit, processor and GPU.
//
// On the CPU, batches of queries are ranked, turned into (list, queries), and scanned list by list (list_scan.hpp), the
// nearest lists of all queries first, so that later lists benefit from low thresholds.
//
// Memory of a batch: 18 k + 1,100 bytes and 20 bytes per probe for each query, and a few hundred KB for each thread.
#pragma once

#include <kith/neighbors.hpp>
#include <kith/range_search.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/footprint.hpp"
#include "ivf/model/ivf_model.hpp"
#include "ivf/segment/segment_copies.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace kith {

// Parameters of a search.
struct IvfSearch {
  int64_t k = 0;                   // neighbours of each query
  int64_t probes = 1;              // lists that a query looks at; all, where there are fewer
  const uint64_t* kept = nullptr;  // bits of row numbers; null: all rows count
  std::optional<float> most = {};  // instead of k: all vectors with keys up to this (core/metric_unit.hpp)
  int64_t fewest = 0;              // kept vectors that a query's lists must hold; 0 where it is known that all do
  const uint32_t* sizes = nullptr;  // kept vectors of each list, on the host, where more than the given lists count
  bool check_finite = false;       // of queries not yet checked
  const int32_t* ranked = nullptr;  // on the CPU: each query's `probes` lists, nearest first; null: to be ranked
  bool extends = true;             // search further lists if these hold too few; false for shards
  bool prepares = true;            // may keep data beside the lists for later searches (list_screen.hpp)
};

// Whether all lists are searched if a filter keeps `kept` of `rows` rows: if these are fewer than the vectors that
// `probes` lists hold on average, so that comparing all of them takes no longer than going over those lists. Depends on
// counts only, so it is the same on every device; callers of a search of lists must check it first.
constexpr bool kept_decide(int64_t kept, int64_t rows, int64_t probes, int64_t lists) {
  return kept * lists < rows * probes;
}

// Queries are in host memory, of any dtype, already transformed, and are checked; `out` is in host memory too. `fewest`
// is computed here.
void search_ivf(const IvfModel& model, const std::vector<Segment>& segments, const MatrixView& queries,
                const IvfSearch& search, const NeighborsView& out, const Resources& resources);
// All vectors in range in the queries' lists, sorted for each query. OutOfMemory names a sufficient limit.
RangeNeighbors range_search_ivf(const IvfModel& model, const std::vector<Segment>& segments, const MatrixView& queries,
                                const IvfSearch& search, const Resources& resources);

// The least memory of these for that many queries of `rows` vectors; for a range search without its results, whose size
// is not known in advance.
Footprint search_ivf_footprint(const IvfModel& model, int64_t rows, const IvfSearch& search, bool filtered,
                               int64_t queries, const Resources& resources);

// The lists of an index, ready for searches on a device.
//
// On a GPU every segment is searched by itself, and what was found in each is brought together: so an add costs its own
// rows, and nothing is copied to make segments one. Memory there: the segments (list_segment.hpp), up to 4 bytes a
// vector more that the first search computes (prepare_lists_cuda.hpp), the model (gpu_model_cuda.hpp); for a search
// what plan_ivf_search says and 12 bytes a probe and up to 24 a neighbour for each query, as many queries at a time as
// there is room for.
class SearchableLists {
 public:
  virtual ~SearchableLists() = default;

  // Like search_ivf() and range_search_ivf(). If the device is a GPU, queries may also be f32 in its memory, `out` may
  // be there, and a `fewest` of 0 avoids reading the lists' sizes. Both return when the result is complete.
  virtual void search(const MatrixView& queries, const IvfSearch& search, const NeighborsView& out,
                      const Resources& resources) const = 0;
  virtual RangeNeighbors range_search(const MatrixView& queries, const IvfSearch& search,
                                      const Resources& resources) const = 0;
};

// Copies to the device what it lacks of the segments and the model, which must outlive it. Throws OutOfMemory if it
// has no room.
std::shared_ptr<const SearchableLists> lists_on(Device device, const std::shared_ptr<const IvfModel>& model,
                                                const std::vector<SharedSegment>& segments,
                                                const Resources& resources);
// The GPU implementation; throws Unsupported without CUDA.
std::shared_ptr<const SearchableLists> gpu_lists(int device, const std::shared_ptr<const IvfModel>& model,
                                                 const std::vector<SharedSegment>& segments,
                                                 const Resources& resources);

}  // namespace kith
