#include "ivf/search/long_lists_cuda.hpp"

#include <kith/error.hpp>
#include <kith/row_filter.hpp>

#include "core/host_array.hpp"
#include "cuda/host_copy.hpp"
#include "exact/exact_search.hpp"
#include "exact/search_checks.hpp"
#include "ivf/search/list_steps_cuda.hpp"
#include "rows/row_source.hpp"
#include "rows/rows_cuda.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace kith {
namespace {

constexpr std::string_view kLongLists = "long lists";
constexpr int64_t kLongList = 65536;
constexpr int64_t kManyOfList = 1024;    // queries of a list
constexpr double kLeastProducts = 4e10;  // below this an exact search's fixed cost dominates
constexpr int64_t kUneven = 8;           // multiple of the mean length; shorter lists are scanned as fast

// Only where the longest list may be one. Equal vectors, which are compared once, make a list short.
bool may_have_lists_apart(const IvfSearchTask& task, const IvfSearchShape& shape, const IvfSearchPlan& plan,
                          Metric metric) {
  return can_search_list(task, shape, metric) && !plan.direct && !shape.repeats && shape.longest >= kLongList &&
         shape.longest * shape.lists > kUneven * shape.vectors && shape.queries >= kManyOfList &&
         plan.batch >= shape.queries;
}

std::vector<LongList> find_lists_apart(const IvfSearchTask& task, const IvfSearchShape& shape,
                                       const std::shared_ptr<const DeviceContext>& context,
                                       const Resources& resources) {
  const DeviceArray<uint32_t> counts(shape.lists, kLongLists, context, resources);
  context->fill(counts.data(), 0, shape.lists);
  launch_count_probing(task.probes, shape.queries * shape.slots, task.lists, kLongList, counts.data(),
                       context->stream());
  const HostArray<int64_t> offsets =
      copied_to_host(task.lists.offsets, shape.lists + 1, kLongLists, *context, resources);
  const HostArray<uint32_t> probing =
      copied_to_host<uint32_t>(counts.data(), shape.lists, kLongLists, *context, resources);
  std::vector<LongList> apart;
  for (int64_t list = 0; list < shape.lists; ++list) {
    const int64_t length = offsets[list + 1] - offsets[list];
    const double products = static_cast<double>(length) * probing[list] * static_cast<double>(shape.format.cols);
    if (probing[list] < kManyOfList || products < kLeastProducts) continue;
    const DeviceArray<uint32_t> numbers(int64_t{probing[list]} + 1, kLongLists, context, resources);
    context->fill(numbers.data(), 0, 1);
    launch_list_probing(task.probes, shape.queries, shape.slots, static_cast<uint32_t>(list), numbers.data(),
                        context->stream());
    LongList found{list, offsets[list], length, std::vector<uint32_t>(probing[list])};
    context->copy_values(found.queries.data(), numbers.data() + 1, int64_t{probing[list]});
    context->synchronize();
    std::sort(found.queries.begin(), found.queries.end());
    apart.push_back(std::move(found));
  }
  return apart;
}

}  // namespace

bool can_search_list(const IvfSearchTask& task, const IvfSearchShape& shape, Metric metric) {
  const CodeFormat& format = shape.format;
  const bool floats = format.kind == CodeKind::stored && format.dtype == DType::f32;
  return floats && !task.lists.residual && !larger_is_nearer(metric) && task.kept == nullptr;
}

void search_long_list(const LongList& list, const IvfSearchTask& task, const IvfSearchShape& shape, Metric metric,
                      const std::shared_ptr<const DeviceContext>& context, const Resources& resources) {
  const int64_t cols = shape.format.cols;
  const int64_t k = shape.k;
  const auto m = static_cast<int64_t>(list.queries.size());
  const MemorySpace space = MemorySpace::cuda(context->device());
  const DeviceArray<float> gathered(m * cols, kLongLists, context, resources);
  const DeviceArray<uint32_t> numbers(m, kLongLists, context, resources);
  const DeviceArray<int64_t> ids(m * k, kLongLists, context, resources);
  const DeviceArray<float> keys(m * k, kLongLists, context, resources);
  const DeviceArray<uint64_t> packed(3 * m * k, kLongLists, context, resources);
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
  context->synchronize();  // before its buffers are freed
}

DeviceArray<uint64_t> probes_without(const std::vector<LongList>& lists, const IvfSearchTask& task,
                                     const IvfSearchShape& shape, const std::shared_ptr<const DeviceContext>& context,
                                     const Resources& resources) {
  const HostArray<uint8_t> marks(shape.lists, kLongLists, resources);
  std::fill_n(marks.data(), shape.lists, uint8_t{0});
  for (const LongList& list : lists) marks[list.list] = 1;
  const int64_t probes = shape.queries * shape.slots;
  const DeviceArray<uint8_t> marked(shape.lists, kLongLists, context, resources);
  DeviceArray<uint64_t> fewer(probes, kLongLists, context, resources);
  context->copy_values(marked.data(), marks.data(), shape.lists);
  launch_leave_out_probes(task.probes, probes, marked.data(), fewer.data(), context->stream());
  context->synchronize();  // waits for the marks
  return fewer;
}

ListsApart::ListsApart(const IvfSearchTask& task, const IvfSearchShape& shape, const IvfSearchPlan& plan, Metric metric,
                       std::shared_ptr<const DeviceContext> context, const Resources& resources)
    : task_(task), shape_(shape), context_(std::move(context)), resources_(resources) {
  if (!may_have_lists_apart(task, shape, plan, metric)) return;
  try {
    const std::vector<LongList> lists = find_lists_apart(task, shape, context_, resources_);
    if (!lists.empty()) search(lists, metric);
  } catch (const OutOfMemory&) {  // optional: the scan is used instead
  }
}

void ListsApart::search(const std::vector<LongList>& lists, Metric metric) {
  const int64_t neighbors = shape_.queries * shape_.k;
  probes_ = probes_without(lists, task_, shape_, context_, resources_);
  found_ = DeviceArray<uint64_t>(neighbors, kLongLists, context_, resources_);
  both_ = DeviceArray<uint64_t>(neighbors, kLongLists, context_, resources_);
  context_->fill(found_.data(), 0xFF, neighbors);
  IvfSearchTask there = task_;
  there.neighbors = found_.data();
  for (const LongList& list : lists) search_long_list(list, there, shape_, metric, context_, resources_);
  searched_ = true;
}

void ListsApart::bring_in() const {
  if (!searched_) return;
  const cudaStream_t stream = context_->stream();
  launch_merge_found(task_.neighbors, found_.data(), shape_.queries, shape_.k, both_.data(), stream);
  context_->copy_values<uint64_t>(task_.neighbors, both_.data(), both_.size());
  context_->synchronize();  // before its buffers are freed
}

}  // namespace kith
