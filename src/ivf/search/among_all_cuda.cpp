#include "ivf/search/among_all_cuda.hpp"

#include <kith/row_filter.hpp>

#include "core/divide.hpp"
#include "core/footprint.hpp"
#include "core/host_array.hpp"
#include "cuda/device_array.hpp"
#include "exact/exact_search.hpp"
#include "exact/search_checks.hpp"
#include "ivf/search/list_steps_cuda.hpp"
#include "rows/row_source.hpp"
#include "rows/rows_cuda.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

namespace kith {
namespace {

constexpr std::string_view kAmongAll = "queries among all vectors";
constexpr uint32_t kManyLeft = 256;
constexpr double kDirectPair = 6;        // a pair that is compared directly, in pairs of exact search
constexpr int64_t kFixedQueries = 2048;  // exact search takes as long as for so many at least

template <typename T>
T read_one(const T* from, const DeviceContext& context) {
  T value = {};
  context.copy_values(&value, from, 1);
  context.synchronize();
  return value;
}

}  // namespace

uint32_t search_among_all(const IvfSearchTask& task, const IvfSearchShape& shape, const IvfSearchPlan& plan,
                          Metric metric, uint32_t count, std::byte* memory,
                          const std::shared_ptr<const DeviceContext>& context, const Resources& resources) {
  const int64_t cols = shape.format.cols;
  const int64_t rows = shape.vectors;
  const int64_t k = shape.k;
  const bool has_room = 2 * array_bytes<float>(rows * cols) <= SpareDeviceMemory::of(resources);
  if (count < kManyLeft || k > rows || !has_room) return count;
  const cudaStream_t stream = context->stream();
  const ProbedLists probed = task;
  auto* const left = const_cast<uint32_t*>(left_queries(memory, shape, plan));
  auto* const left_count = const_cast<uint32_t*>(directly_searched(memory));
  const DeviceArray<unsigned long long> probed_vectors(1, kAmongAll, context, resources);
  context->fill(probed_vectors.data(), 0, 1);
  launch_sum_probed(probed.probes, shape.slots, probed.lists, left, count, probed_vectors.data(), stream);
  const auto pairs = static_cast<double>(read_one(probed_vectors.data(), *context));
  if (kDirectPair * pairs < static_cast<double>(kFixedQueries + count) * static_cast<double>(rows)) return count;

  const DeviceArray<float> vectors(rows * cols, kAmongAll, context, resources);
  const DeviceArray<uint32_t> lists_of_rows(rows, kAmongAll, context, resources);
  const DeviceArray<uint32_t> filled(divide_up(rows, int64_t{32}) + 1, kAmongAll, context, resources);
  context->fill(filled.data(), 0, filled.size());
  launch_place_vectors(task.lists, rows, vectors.data(), filled.data(), stream);
  launch_lists_of_rows(task.lists, rows, lists_of_rows.data(), stream);
  if (read_one(filled.data() + filled.size() - 1, *context) != 0) return count;

  const auto m = static_cast<int64_t>(count);
  const MemorySpace space = MemorySpace::cuda(context->device());
  std::vector<uint32_t> numbers(count);
  context->copy_values(numbers.data(), left, m);
  context->synchronize();
  const DeviceArray<float> gathered(m * cols, kAmongAll, context, resources);
  const DeviceArray<int64_t> ids(m * k, kAmongAll, context, resources);
  const DeviceArray<float> keys(m * k, kAmongAll, context, resources);
  const DeviceArray<uint32_t> still_left(m, kAmongAll, context, resources);
  gather_floats_cuda(MatrixView(task.queries, DType::f32, {shape.queries, cols, task.query_stride}, space), numbers,
                     gathered.data(), resources);
  ViewSource queries(MatrixView(gathered.data(), DType::f32, {m, cols, cols}, space));
  ViewSource base(MatrixView(vectors.data(), DType::f32, {rows, cols, cols}, space));
  SearchShape wanted = check_knn(queries.info(), base.info(), {k, metric});
  wanted.base_checked = true;
  search_knn(wanted, {.k = k, .check_finite = false, .result_space = space}, {queries, base, RowFilter()},
             {ids.data(), keys.data(), m, k, space}, resources);

  context->fill(left_count, 0, 1);
  AcceptFoundTask accept;
  accept.ids = ids.data();
  accept.keys = keys.data();
  accept.count = m;
  accept.k = k;
  accept.queries = left;
  accept.probes = task.probes;
  accept.slots = shape.slots;
  accept.lists_of_rows = lists_of_rows.data();
  accept.neighbors = task.neighbors;
  accept.left = still_left.data();
  accept.left_count = left_count;
  launch_accept_found(accept, stream);
  const uint32_t still = read_one<uint32_t>(left_count, *context);
  context->copy_values(left, still_left.data(), int64_t{still});
  context->synchronize();  // before what it works on is freed
  return still;
}

}  // namespace kith
