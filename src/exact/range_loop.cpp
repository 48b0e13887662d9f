#include "exact/range_loop.hpp"

#include <kith/error.hpp>

#include "core/byte_size.hpp"
#include "core/dispatch.hpp"
#include "core/divide.hpp"
#include "core/float_mode.hpp"
#include "core/memory_budget.hpp"
#include "core/metric_unit.hpp"
#include "core/named_limit.hpp"
#include "core/ordered_number.hpp"
#include "core/result_exit.hpp"
#include "core/within_limits.hpp"
#include "exact/search_backend.hpp"
#include "exact/search_footprint.hpp"
#include "kernels/select/range_hits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

namespace kith {
namespace {

// What to do if the limit has no room for the rows of a batch.
enum class WhenFull : uint8_t {
  smaller_batches,  // each batch leaves memory when it is done, so that fewer queries at a time will do
  count,            // the rows of all queries stay: what is left is how many there are, for the error
};

// Whether there is room to join the rows of a batch and, unless they stay, to write them out.
bool room_for(int64_t found, int64_t queries, WhenFull when_full, const Resources& resources) {
  const int64_t bytes_each = when_full == WhenFull::smaller_batches ? 20 : 8;
  return found * bytes_each + 32 * (queries + 1) <= resources.host_memory()->available();
}

int64_t bytes_of_rows(int64_t found, const SearchShape& shape, const Resources& resources) {
  return RangeHits::footprint(found, shape.queries, resources.threads()).host;
}

// The host limit that suffices for so many hits. A search plans with half of its limit if that suffices, and an index
// prepares its rows in half of it (`prepares`): twice the larger part suffices, as does room for the largest plan.
int64_t range_limit(int64_t found, const SearchTask& task, Device device, bool prepares, const Resources& resources) {
  const int64_t rows = bytes_of_rows(found, task.shape, resources);
  const int64_t with_any = 2 * std::max(rows, least_plan(task, device, resources).host);
  if (prepares) return 2 * with_any;
  return std::min(with_any, rows + largest_plan_bytes(task, device, resources));
}

// `held`: memory in use beside the search, for example by its filter.
[[noreturn]] void throw_too_many(int64_t found, const PlannedSearch& search, int64_t held, bool prepares,
                                 const Resources& resources) {
  const Device device = search.plan().device;
  const int64_t rows = bytes_of_rows(found, search.task().shape, resources);
  throw NamedLimit(
      "host", held + range_limit(found, search.task(), device, prepares, resources),
      fmt::format("{} rows are in range, which takes {} beside the search, more than the host memory limit "
                  "leaves; raise the limit, or lower the radius",
                  found, format_bytes_up(rows)));
}

SearchRequest request_of(const RangeParams& params) {
  return {.what = Wanted::within, .check_finite = params.check_finite, .result_space = params.result_space};
}

void require_range_memory(const SearchShape& shape, const RangeParams& params, const Resources& resources) {
  require_memory(fmt::format("the range search ({} bytes more for each row in range)", RangeHits::kBytesPerHit),
                 range_footprint(shape, request_of(params), params.filter, resources), resources);
}

std::unique_ptr<RangeBackend> make_backend(const PlannedSearch& search, const RangeParams& params,
                                           const Resources& resources) {
  const float most = key_of(params.metric, params.radius);
  return dispatch(
      search.plan().device, [&] { return make_range_cpu(search, most, resources); },
      [&](int) { return make_range_cuda(search, most, resources); });
}

// The result is empty, which is correct but hardly intended. Cosine may be below 0 by rounding.
void warn_of_negative_radius(const RangeParams& params, const Resources& resources) {
  const bool may_be_negative = params.metric == Metric::inner_product || params.metric == Metric::cosine;
  if (!(params.radius < 0) || may_be_negative) return;
  resources.log(LogLevel::warning,
                fmt::format("range search: the radius is {}, and no distance of {} is below 0: no row "
                            "is in range",
                            params.radius, name_of(params.metric)));
}

// Searches batch after batch, and calls done(first query, queries, backend, meter), which takes the hits of each.
template <typename Done>
void for_each_batch(const PlannedSearch& search, const RangeParams& params, WhenFull when_full,
                    const Resources& resources, const Done& done) {
  warn_of_negative_radius(params, resources);
  if (!search.anything_to_find()) return;
  const SearchTask& task = search.task();
  const int64_t held = resources.host_memory()->used() - search.plan().host_bytes;
  const bool prepares = search.prepares();
  int64_t batch = search.plan().query_batch;
  const std::unique_ptr<RangeBackend> backend = make_backend(search, params, resources);
  search.open(batch);
  ProgressMeter meter("search", task.shape.queries * task.rows, resources);
  int64_t found = 0;
  bool counting = false;
  for (int64_t first = 0; first < task.shape.queries;) {
    const int64_t count = std::min(batch, task.shape.queries - first);
    search.scan(*backend, first, count, meter);
    found += backend->counted();
    const bool fits = !backend->overflowed() && room_for(backend->counted(), count, when_full, resources);
    if (fits) done(first, count, *backend, meter);
    const bool again = !fits && when_full == WhenFull::smaller_batches;
    if (again && count == 1) throw_too_many(backend->counted(), search, held, prepares, resources);
    backend->clear();
    if (again) {
      batch = (count + 1) / 2;
      continue;
    }
    if (!fits) counting = true;
    if (counting) backend->only_count();
    first += count;
  }
  if (counting) throw_too_many(found, search, held, prepares, resources);
  meter.finish();
}

// Hits are neither padding nor NaN.
void write_some(const ResultExit& result, const uint64_t* neighbors, int64_t count, int64_t* ids, float* distances) {
  if (result.numbers == nullptr) {
    for (int64_t i = 0; i < count; ++i) ids[i] = int64_t{row_of(neighbors[i])};
  } else {
    for (int64_t i = 0; i < count; ++i) ids[i] = result.id(neighbors[i]);
  }
  for (int64_t i = 0; i < count; ++i) distances[i] = number_of_ordered(ordered_of(neighbors[i]));
  if (!result.larger_is_nearer) return;
  for (int64_t i = 0; i < count; ++i) distances[i] = 0.0f - distances[i];  // never -0
}

void write_hits(Metric metric, const CollectedHits& hits, const uint32_t* numbers, int64_t* ids, float* distances,
                const Resources& resources) {
  constexpr int64_t kHitsPerTask = 1 << 14;
  const uint64_t* const neighbors = hits.neighbors();
  const Resources quiet = resources.with_progress({});
  ProgressMeter meter("write", hits.size(), quiet);
  parallel_for(divide_up(hits.size(), kHitsPerTask), meter, resources, [&](int64_t task, int) {
    const int64_t first = task * kHitsPerTask;
    write_some(ResultExit(metric, numbers), neighbors + first, std::min(kHitsPerTask, hits.size() - first), ids + first,
               distances + first);
  });
}

// All hits, written query by query as they are sorted; nothing if there is no memory for that or the backend cannot do
// it.
std::optional<RangeNeighbors> write_sorted(const SearchShape& shape, const uint32_t* numbers, RangeBackend& backend,
                                           ProgressMeter& meter, const Resources& resources) {
  const int64_t bytes =
      footprint_of<Neighbors>(resources, backend.counted(), int64_t{1}).host + 64 * (shape.queries + 1);
  if (bytes > resources.host_memory()->available()) return std::nullopt;
  RangeNeighbors result(shape.queries, backend.counted(), resources);
  const ResultExit exit(shape.metric, numbers);
  const auto write = [&](int64_t query, const uint64_t* neighbors, int64_t count) {
    const int64_t at = result.offsets()[query];
    write_some(exit, neighbors, count, result.ids() + at, result.distances() + at);
  };
  if (!backend.hand_out(result.offsets(), write, meter)) return std::nullopt;
  return result;
}

RangeOnDevice parts_of(const RangeNeighbors& result) { return {result.offsets(), result.ids(), result.distances()}; }

// The result on the device, for all queries at once; nothing if they do not fit in one batch, or the hits not in the
// device's memory.
std::optional<RangeNeighbors> found_on_device(const SearchShape& shape, const RangeParams& params,
                                              const SearchInput& input, const Resources& resources) {
  const PlannedSearch search(shape, request_of(params), input, resources);
  if (!search.anything_to_find() || search.numbers() != nullptr) return std::nullopt;
  if (search.plan().query_batch < shape.queries) return std::nullopt;
  const std::unique_ptr<RangeBackend> backend = make_backend(search, params, resources);
  search.open(shape.queries);
  ProgressMeter meter("search", shape.queries * search.task().rows, resources);
  search.scan(*backend, 0, shape.queries, meter);
  meter.finish();
  if (backend->overflowed()) return std::nullopt;
  if (params.allocate) backend->begin_finish_on_device();  // what is allocated here comes before the memory to sort in
  RangeNeighbors result(shape.queries, backend->counted(), params.result_space, params.allocate, resources);
  if (!backend->finish_on_device(parts_of(result))) return std::nullopt;
  return result;
}

RangeNeighbors search_to_device(const SearchShape& shape, const RangeParams& params, const SearchInput& input,
                                const Resources& resources) {
  if (std::optional<RangeNeighbors> there = found_on_device(shape, params, input, resources)) return *std::move(there);
  RangeParams to_host = params;
  to_host.result_space = MemorySpace::host();
  return in_space(search_range(shape, to_host, input, resources), params.result_space, params.allocate, resources);
}

}  // namespace

bool RangeBackend::finish_on_device(const RangeOnDevice&) {
  throw InvalidState("this backend has no device memory to write to");
}

RangeNeighbors write_hits(Metric metric, std::vector<CollectedHits> parts, const uint32_t* numbers, int64_t queries,
                          const Resources& resources) {
  int64_t found = 0;
  for (const CollectedHits& part : parts) found += part.size();
  RangeNeighbors result(queries, found, resources);
  if (counts_only(resources)) return result;
  std::fill_n(result.offsets(), queries + 1, int64_t{0});
  int64_t query = 0;
  int64_t at = 0;
  for (CollectedHits& part : parts) {
    write_hits(metric, part, numbers, result.ids() + at, result.distances() + at, resources);
    for (int64_t q = 0; q < part.queries(); ++q) result.offsets()[++query] = at + part.offsets()[q + 1];
    at += part.size();
    part = CollectedHits();
  }
  return result;
}

RangeNeighbors in_space(RangeNeighbors found, MemorySpace space, const RangeAllocator& allocate,
                        const Resources& resources) {
  if (space.host_readable() || !found.space().host_readable()) return found;
  RangeNeighbors result(found.queries(), found.size(), space, allocate, resources);
  write_range_cuda(found.view(), parts_of(result), space.device, resources);
  return result;
}

SearchShape check_range(const RowsInfo& queries, const RowsInfo& base, const RangeParams& params) {
  params.validate();
  return check_search(queries, base, params.metric);
}

RangeNeighbors search_range(const SearchShape& shape, const RangeParams& params, const SearchInput& input,
                            const Resources& resources) {
  const DefaultFloatMode mode;
  if (counts_memory(resources)) require_range_memory(shape, params, resources);
  if (!params.result_space.host_readable()) return search_to_device(shape, params, input, resources);
  PlannedSearch search(shape, request_of(params), input, resources);
  std::vector<CollectedHits> parts;
  std::optional<RangeNeighbors> whole;
  for_each_batch(search, params, WhenFull::count, resources,
                 [&](int64_t, int64_t count, RangeBackend& backend, ProgressMeter& meter) {
                   if (count == shape.queries) {
                     whole = write_sorted(shape, search.numbers(), backend, meter, resources);
                     if (whole) return;
                   }
                   parts.push_back(backend.finish(meter));
                 });
  if (whole) return *std::move(whole);
  search.give_memory_back();
  return write_hits(shape.metric, std::move(parts), search.numbers(), shape.queries, resources);
}

void search_range(const SearchShape& shape, const RangeParams& params, const SearchInput& input, const RangeSink& sink,
                  const Resources& resources) {
  const DefaultFloatMode mode;
  if (counts_memory(resources)) require_range_memory(shape, params, resources);
  const PlannedSearch search(shape, request_of(params), input, resources);
  int64_t told = 0;
  for_each_batch(search, params, WhenFull::smaller_batches, resources,
                 [&](int64_t first, int64_t, RangeBackend& backend, ProgressMeter& meter) {
                   const CollectedHits hits = backend.finish(meter);
                   RangeNeighbors part(hits.queries(), hits.size(), resources);
                   std::copy_n(hits.offsets(), hits.queries() + 1, part.offsets());
                   write_hits(shape.metric, hits, search.numbers(), part.ids(), part.distances(), resources);
                   sink(first, part.view());
                   told = first + hits.queries();
                 });
  for (const int64_t nothing[2] = {0, 0}; told < shape.queries; ++told) sink(told, {nothing, nullptr, nullptr, 1});
}

}  // namespace kith
