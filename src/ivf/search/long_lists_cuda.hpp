// Long lists of f32 that many queries look at, searched on a GPU by exact search, as bases of their own. It reads a
// vector once for more queries than a scan of lists does, and has ways with queries and rows that halves of one scale
// cannot tell apart (exact/vicinities_cuda.hpp).
//
// A list's vectors lie in the order of their rows, so that what exact search finds in it is in the order of results.
// Cost: an exact search of each such list for those queries that look at it. Memory beyond the search's, which it does
// without where there is none: that of an exact search, 32 bytes a neighbour, and 8 a probe.
#pragma once

#include <kith/metric.hpp>
#include <kith/resources.hpp>

#include "cuda/device_array.hpp"
#include "cuda/device_context.hpp"
#include "ivf/search/ivf_search_cuda.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace kith {

// A list, and the queries that are searched in it.
struct LongList {
  int64_t list = 0;
  int64_t first = 0;  // of its vectors
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

// The lists of a search that are searched apart, if any: those so long, and looked at by so many, that exact search is
// sooner. They come first: what they hold rules out much of the others.
class ListsApart {
 public:
  // Searches them, and waits. Where a list is long enough it waits, too, until it is known how many queries look at it.
  ListsApart(const IvfSearchTask& task, const IvfSearchShape& shape, const IvfSearchPlan& plan, Metric metric,
             std::shared_ptr<const DeviceContext> context, const Resources& resources);

  // The probes of the other lists, and what these hold, queries x k, sorted and padded; none where there are none, or
  // no memory for it: then all lists are searched the other way.
  const uint64_t* probes() const { return searched_ ? probes_.data() : task_.probes; }
  const uint64_t* found() const { return searched_ ? found_.data() : nullptr; }
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
