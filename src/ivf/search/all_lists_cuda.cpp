#include "ivf/search/all_lists_cuda.hpp"

#include <kith/error.hpp>
#include <kith/row_filter.hpp>

#include "core/divide.hpp"
#include "core/footprint.hpp"
#include "core/within_limits.hpp"
#include "cuda/device_array.hpp"
#include "cuda/device_guard.hpp"
#include "exact/exact_search.hpp"
#include "exact/search_checks.hpp"
#include "ivf/scan/prepared_segment_cuda.hpp"
#include "ivf/search/list_steps_cuda.hpp"
#include "rows/row_source.hpp"

#include <algorithm>
#include <string_view>

namespace kith {
namespace {

constexpr std::string_view kInRowOrder = "the vectors in the order of their rows";

bool holds_given_floats(const DeviceListsView& lists) {
  const CodeFormat& format = lists.codec.format;
  return format.kind == CodeKind::stored && format.dtype == DType::f32 && !lists.residual;
}

bool suits(const ListsOnDevice& lists, const MatrixView& queries, const IvfSearch& search) {
  if (search.probes < lists.lists || search.kept != nullptr || search.most || queries.dtype() != DType::f32)
    return false;
  AllListsShape shape{queries.rows(), search.k, lists.lists};
  for (const auto& part : lists.parts) {
    if (!holds_given_floats(part->lists())) return false;
    shape.vectors += part->lists().count;
    shape.longest += part->longest();
    shape.repeats = shape.repeats || part->repeats() != nullptr;
    shape.by_row = shape.by_row || part->prepared().upper_terms != nullptr;
  }
  return shape.vectors == lists.rows && search.k <= lists.rows && prefers_exact_search(shape);
}

}  // namespace

bool prefers_exact_search(const AllListsShape& shape) {
  constexpr int64_t kManyQueries = 4096;  // with fewer, a scan is faster than preparing operands of all vectors
  constexpr int64_t kSomeQueries = 64;
  constexpr int64_t kFewNeighbors = 32;
  const bool uneven = shape.longest * shape.lists > 2 * shape.vectors && !shape.repeats;
  if (shape.by_row && !shape.repeats) return shape.queries >= kSomeQueries;
  return shape.queries >= kManyQueries && (shape.k <= kFewNeighbors || uneven);
}

bool search_all_lists(const ListsOnDevice& lists, const MatrixView& queries, const IvfSearch& search,
                      const NeighborsView& out, const Resources& given) {
  if (counts_only(given) || !suits(lists, queries, search)) return false;
  const DeviceGuard guard(lists.device);
  const auto context = std::make_shared<const DeviceContext>(lists.device, given.options().stream);
  const Resources resources = given.with_device(Device::cuda(lists.device)).with_stream(context->stream());
  const int64_t cols = lists.parts.front()->lists().codec.format.cols;
  if (2 * array_bytes<float>(lists.rows * cols) > SpareDeviceMemory::of(given)) return false;
  try {
    const DeviceArray<float> vectors(lists.rows * cols, kInRowOrder, context, resources);
    const DeviceArray<uint32_t> filled(divide_up(lists.rows, int64_t{32}) + 1, kInRowOrder, context, resources);
    context->fill(filled.data(), 0, filled.size());
    for (const auto& part : lists.parts) {
      launch_place_vectors(part->lists(), lists.rows, vectors.data(), filled.data(), context->stream());
    }
    uint32_t misplaced = 0;
    context->copy_values(&misplaced, filled.data() + filled.size() - 1, 1);
    context->synchronize();
    if (misplaced != 0) return false;
    const MemorySpace here = MemorySpace::cuda(lists.device);
    ViewSource looking(queries);
    ViewSource base(MatrixView(vectors.data(), DType::f32, {lists.rows, cols, cols}, here));
    SearchShape shape = check_knn(looking.info(), base.info(), {search.k, lists.metric});
    shape.base_checked = true;
    search_knn(shape, {.k = search.k, .check_finite = search.check_finite, .result_space = out.space},
               {looking, base, RowFilter()}, out, resources);
    context->synchronize();  // before its buffers are freed
    return true;
  } catch (const OutOfMemory&) {  // optional: the scan is used instead
    return false;
  }
}

}  // namespace kith
