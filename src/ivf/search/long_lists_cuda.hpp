// Searches long f32 lists that many queries visit on a GPU by exact search, each list as a base of its own. Exact
// search reads a vector once for more queries than a scan of lists does, and handles queries and rows that fp16 with a
// single scale cannot distinguish (exact/vicinities_cuda.hpp).
//
// A list's vectors are in the order of their rows, so exact search's results for it are in the required order. Cost: an
// exact search of each such list for the queries that visit it. Takes memory in addition to the search's, and is
// skipped if there is none: that of an exact search, 32 bytes per neighbour, and 8 per probe.
#pragma once

#include <kith/metric.hpp>
#include <kith/resources.hpp>

#include "cuda/device_array.hpp"
#include "cuda/device_context.hpp"
#include "ivf/search/ivf_search_cuda.hpp"
#include "ivf/search/list_steps_cuda.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace kith {

// A list and the queries searched in it.
struct LongList {
  int64_t list = 0;
  int64_t first = 0;  // its first vector
  int64_t length = 0;
  std::vector<uint32_t> queries;
};

// What exact search can be asked for: given f32 vectors, where no filter is, by distances.
bool can_search_list(const IvfSearchTask& task, const IvfSearchShape& shape, Metric metric);

// Brings the first k of the list's vectors for its queries together with what task.neighbors has of other lists. Waits.
void search_long_list(const LongList& list, const IvfSearchTask& task, const IvfSearchShape& shape, Metric metric,
                      const std::shared_ptr<const DeviceContext>& context, const Resources& resources);

// The probes of a search without those of some lists; which enqueues.
DeviceArray<uint64_t> probes_without(const std::vector<LongList>& lists, const IvfSearchTask& task,
                                     const IvfSearchShape& shape, const std::shared_ptr<const DeviceContext>& context,
                                     const Resources& resources);

// The lists of a search that are searched separately, if any: those so long, and visited by so many queries, that exact
// search is faster. They are searched first, since their results rule out many vectors of the others.
class ListsApart {
 public:
  // Searches them, and waits. Where a list is long enough it waits, too, until it is known how many queries look at it.
  ListsApart(const IvfSearchTask& task, const IvfSearchShape& shape, const IvfSearchPlan& plan, Metric metric,
             std::shared_ptr<const DeviceContext> context, const Resources& resources);

  // The probes of the other lists, and bounds that follow from these; none where there are none, or no memory for it:
  // then all lists are searched the other way.
  const uint64_t* probes() const { return searched_ ? probes_.data() : task_.probes; }
  QueryBounds bounds() const { return searched_ ? QueryBounds{found_.data() + shape_.k - 1, shape_.k} : QueryBounds{}; }
  // Brings it together with what was found in the others, in task.neighbors. Waits.
  void bring_in() const;

 private:
  void search(const std::vector<LongList>& lists, Metric metric);

  const IvfSearchTask task_;
  const IvfSearchShape& shape_;
  const std::shared_ptr<const DeviceContext> context_;
  const Resources resources_;
  bool searched_ = false;
  DeviceArray<uint64_t> probes_;
  DeviceArray<uint64_t> found_;
  DeviceArray<uint64_t> both_;
};

}  // namespace kith
