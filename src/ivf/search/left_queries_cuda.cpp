#include "ivf/search/left_queries_cuda.hpp"

#include <kith/error.hpp>
#include <kith/row_filter.hpp>

#include "core/host_array.hpp"
#include "core/ordered_key.hpp"
#include "cuda/device_array.hpp"
#include "exact/exact_search.hpp"
#include "exact/search_checks.hpp"
#include "ivf/search/list_steps_cuda.hpp"
#include "rows/row_source.hpp"
#include "rows/rows_cuda.hpp"

#include <algorithm>
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

// A long list, and the queries that are left and look at it.
struct LongList {
  int64_t list = 0;
  int64_t first = 0;  // of its vectors
  int64_t length = 0;
  std::vector<uint32_t> queries;
};

template <typename T>
HostArray<T> on_host(const T* from, int64_t count, const DeviceContext& context, const Resources& resources) {
  HostArray<T> values(count, kPurpose, resources);
  context.copy_values(values.data(), from, count);
  context.synchronize();
  return values;
}

std::vector<LongList> long_lists(const IvfSearchTask& task, const IvfSearchShape& shape,
                                 const HostArray<uint32_t>& left, const DeviceContext& context,
                                 const Resources& resources) {
  const HostArray<int64_t> offsets = on_host(task.lists.offsets, shape.lists + 1, context, resources);
  const HostArray<uint64_t> probes = on_host(task.probes, shape.queries * shape.slots, context, resources);
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

// The first k of the list's vectors for its queries, brought together with what was found in other lists.
void search_list(const LongList& list, const IvfSearchTask& task, const IvfSearchShape& shape, Metric metric,
                 const std::shared_ptr<const DeviceContext>& context, const Resources& resources) {
  const int64_t cols = shape.format.cols;
  const int64_t k = shape.k;
  const auto m = static_cast<int64_t>(list.queries.size());
  const MemorySpace space = MemorySpace::cuda(context->device());
  const DeviceArray<float> gathered(m * cols, kPurpose, context, resources);
  const DeviceArray<uint32_t> numbers(m, kPurpose, context, resources);
  const DeviceArray<int64_t> ids(m * k, kPurpose, context, resources);
  const DeviceArray<float> keys(m * k, kPurpose, context, resources);
  const DeviceArray<uint64_t> packed(3 * m * k, kPurpose, context, resources);
  const MatrixView all(task.queries, DType::f32, {shape.queries, cols, task.query_stride}, space);
  gather_floats_cuda(all, list.queries, gathered.data(), resources);
  context->copy_values<uint32_t>(numbers.data(), list.queries.data(), m);
  const auto* const vectors = reinterpret_cast<const float*>(task.lists.codes) + list.first * cols;
  ViewSource queries(MatrixView(gathered.data(), DType::f32, {m, cols, cols}, space));
  ViewSource base(MatrixView(vectors, DType::f32, {list.length, cols, cols}, space));
  SearchShape wanted = check_knn(queries.info(), base.info(), {k, metric});
  wanted.base_checked = true;
  search_knn(wanted, {.k = k, .check_finite = false, .result_space = space}, {queries, base, RowFilter()},
             {ids.data(), keys.data(), m, k, space}, resources);
  uint64_t* const here = packed.data();
  uint64_t* const others = here + m * k;
  uint64_t* const both = others + m * k;
  const cudaStream_t stream = context->stream();
  launch_pack_found(ids.data(), keys.data(), m * k, task.lists.rows + list.first, here, stream);
  launch_take_found(task.neighbors, numbers.data(), m, k, others, stream);
  launch_merge_found(here, others, m, k, both, stream);
  launch_put_found(both, numbers.data(), m, k, task.neighbors, stream);
  context->synchronize();  // before what it works on is freed
}

}  // namespace

bool suits_left_queries(const IvfSearchTask& task, const IvfSearchShape& shape, const IvfSearchPlan& plan,
                        Metric metric) {
  const CodeFormat& format = shape.format;
  const bool floats = format.kind == CodeKind::stored && format.dtype == DType::f32;
  return floats && !task.lists.residual && !larger_is_nearer(metric) && task.kept == nullptr && !plan.direct &&
         plan.cut.rescans && shape.longest >= kShortList && shape.queries >= kFewQueries && plan.batch >= shape.queries;
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
    const HostArray<uint32_t> left = on_host(left_queries(memory, shape, plan), int64_t{count}, *context, beyond);
    const std::vector<LongList> apart = long_lists(task, shape, left, *context, beyond);
    if (apart.empty()) return launch_ivf_direct(task, shape, plan, memory, stream);
    const HostArray<uint8_t> marks(shape.lists, kPurpose, beyond);
    std::fill_n(marks.data(), shape.lists, uint8_t{0});
    for (const LongList& list : apart) marks[list.list] = 1;
    const int64_t probes = shape.queries * shape.slots;
    const DeviceArray<uint8_t> marked(shape.lists, kPurpose, context, beyond);
    const DeviceArray<uint64_t> fewer(probes, kPurpose, context, beyond);
    context->copy_values(marked.data(), marks.data(), shape.lists);
    launch_leave_out_probes(task.probes, probes, marked.data(), fewer.data(), stream);
    IvfSearchTask others = task;
    others.probes = fewer.data();
    launch_ivf_direct(others, shape, plan, memory, stream);
    context->synchronize();
    for (const LongList& list : apart) search_list(list, task, shape, metric, context, beyond);
  } catch (const OutOfMemory&) {  // it can do without
    context->fill(directly_arrived(memory, shape, plan), 0, kSharedQueries);
    launch_ivf_direct(task, shape, plan, memory, stream);
  }
}

}  // namespace kith
