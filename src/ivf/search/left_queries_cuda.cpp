#include "ivf/search/left_queries_cuda.hpp"

#include <kith/error.hpp>

#include "core/host_array.hpp"
#include "core/ordered_key.hpp"
#include "cuda/device_array.hpp"
#include "cuda/host_copy.hpp"
#include "ivf/search/list_steps_cuda.hpp"
#include "ivf/search/long_lists_cuda.hpp"

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kFewQueries = 64;    // which are compared directly,
constexpr int64_t kFewOfList = 32;     // as those of a list are,
constexpr int64_t kShortList = 16384;  // and as a list is
constexpr std::string_view kPurpose = "queries that products leave";

std::vector<LongList> long_lists(const IvfSearchTask& task, const IvfSearchShape& shape,
                                 const HostArray<uint32_t>& left, const DeviceContext& context,
                                 const Resources& resources) {
  const HostArray<int64_t> offsets = copied_to_host(task.lists.offsets, shape.lists + 1, kPurpose, context, resources);
  const HostArray<uint64_t> probes =
      copied_to_host(task.probes, shape.queries * shape.slots, kPurpose, context, resources);
  std::vector<LongList> found(static_cast<size_t>(shape.lists));
  for (const uint32_t query : left) {
    for (int64_t slot = 0; slot < shape.slots; ++slot) {
      const uint64_t probe = probes[int64_t{query} * shape.slots + slot];
      if (probe == kPadding || row_of(probe) >= shape.lists) continue;
      const int64_t list = row_of(probe);
      if (offsets[list + 1] - offsets[list] >= kShortList) found[static_cast<size_t>(list)].queries.push_back(query);
    }
  }
  std::vector<LongList> chosen;
  for (int64_t list = 0; list < shape.lists; ++list) {
    std::vector<uint32_t>& queries = found[static_cast<size_t>(list)].queries;
    if (static_cast<int64_t>(queries.size()) < kFewOfList) continue;
    chosen.push_back({list, offsets[list], offsets[list + 1] - offsets[list], std::move(queries)});
  }
  return chosen;
}

}  // namespace

bool suits_left_queries(const IvfSearchTask& task, const IvfSearchShape& shape, const IvfSearchPlan& plan,
                        Metric metric) {
  return can_search_list(task, shape, metric) && !plan.direct && plan.cut.rescans && shape.longest >= kShortList &&
         shape.queries >= kFewQueries && plan.batch >= shape.queries;
}

void search_left_queries(const IvfSearchTask& task, const IvfSearchShape& shape, const IvfSearchPlan& plan,
                         Metric metric, std::byte* memory, const std::shared_ptr<const DeviceContext>& context,
                         const Resources& beyond) {
  uint32_t count = 0;
  context->copy_values<uint32_t>(&count, directly_searched(memory), 1);
  context->synchronize();
  if (count == 0) return;
  const cudaStream_t stream = context->stream();
  if (count < kFewQueries) return launch_ivf_direct(task, shape, plan, memory, stream);
  try {
    const HostArray<uint32_t> left =
        copied_to_host(left_queries(memory, shape, plan), int64_t{count}, kPurpose, *context, beyond);
    const std::vector<LongList> apart = long_lists(task, shape, left, *context, beyond);
    if (apart.empty()) return launch_ivf_direct(task, shape, plan, memory, stream);
    const DeviceArray<uint64_t> fewer = probes_without(apart, task, shape, context, beyond);
    IvfSearchTask others = task;
    others.probes = fewer.data();
    // Long lists first: their results rule out most vectors of the others.
    const DeviceArray<uint64_t> none(count * shape.k, kPurpose, context, beyond);
    context->fill(none.data(), 0xFF, none.size());
    launch_put_found(none.data(), left_queries(memory, shape, plan), count, shape.k, task.neighbors, stream);
    for (const LongList& list : apart) search_long_list(list, task, shape, metric, context, beyond);
    launch_ivf_direct(others, shape, plan, memory, stream, true);
    context->synchronize();       // before its buffers are freed
  } catch (const OutOfMemory&) {  // optional: queries are then searched directly
    context->fill(directly_arrived(memory, shape, plan), 0, kSharedQueries);
    launch_ivf_direct(task, shape, plan, memory, stream);
  }
}

}  // namespace kith
