#include "exact/range_loop.hpp"

#include <kith/error.hpp>

#include "core/byte_size.hpp"
#include "core/dispatch.hpp"
#include "core/divide.hpp"
#include "core/float_mode.hpp"
#include "core/memory_budget.hpp"
#include "core/ordered_key.hpp"
#include "core/result_exit.hpp"
#include "exact/metric_unit.hpp"
#include "exact/range_backend.hpp"
#include "exact/range_hits.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kith {
namespace {

// Of a row found, while a batch is put together: as it was added and as it is sorted.
constexpr int64_t kBytesPerHit = 24;

// What is done where the limit has no room for a batch's rows.
enum class WhenFull : uint8_t {
  smaller_batches,  // each batch leaves memory when it is done, so that fewer queries at a time will do
  count,            // the rows of all queries stay: what is left is how many there are, for the error
};

// Whether the batch's rows can be put together, and where they do not stay also written out.
bool room_for(int64_t found, int64_t queries, WhenFull when_full, const Resources& resources) {
  const int64_t bytes_each = when_full == WhenFull::smaller_batches ? 20 : 8;
  return found * bytes_each + 32 * (queries + 1) <= resources.host_memory()->available();
}

[[noreturn]] void throw_too_many(int64_t found, const PlannedKnn& planned) {
  // Beside the rows themselves each thread has a piece of memory that it is about to fill.
  const int64_t needed = found * kBytesPerHit + bytes_of(planned.plan).host +
                         planned.resources().threads() * RangeHits::kLargestSegmentBytes;
  throw OutOfMemory(
      fmt::format("{} rows are in range, which takes {} with the search, more than the host memory limit leaves; raise "
                  "the limit, or lower the radius",
                  found, format_bytes(needed)),
      needed);
}

// Calls done(first query, hits, ids of the rows) for batch after batch.
template <typename Done>
void for_each_batch(const SearchShape& shape, const RangeParams& params, const SearchInput& input, WhenFull when_full,
                    const Resources& resources, const Done& done) {
  const DefaultFloatMode mode;
  const SearchWish wish{.what = Wanted::within, .check_finite = params.check_finite};
  const SettledSearch search(shape, wish, input, resources);
  if (!search.anything_to_find()) return;
  const SearchTask& task = search.task();
  const KnnInput rows = search.input();
  int64_t batch = batches_of(search.planned().plan).query_batch;
  const float most = key_of(shape.metric, params.radius);
  const std::unique_ptr<RangeBackend> backend = dispatch(
      batches_of(search.planned().plan).device,
      [&] { return make_range_cpu(task, search.planned(), rows, most, resources); },
      [&](int) { return make_range_cuda(task, search.planned(), rows, most, resources); });
  rows.queries.open(batch, search.planned().resources());
  ProgressMeter meter("search", task.shape.queries * task.scope.rows, resources);
  int64_t found = 0;
  bool counts_only = false;
  for (int64_t first = 0; first < task.shape.queries;) {
    const int64_t count = std::min(batch, task.shape.queries - first);
    backend->begin(rows.queries.fetch(first, count), first);
    rows.walk([&](const MatrixView& base, int64_t first_row, const PreparedBase* ready) {
      backend->scan(base, first_row, ready, meter);
      meter.poll();
    });
    found += backend->counted();
    const bool fits = !backend->overflowed() && room_for(backend->counted(), count, when_full, resources);
    if (fits) done(first, backend->finish(meter), rows.numbers);
    const bool again = !fits && when_full == WhenFull::smaller_batches;
    if (again && count == 1) throw_too_many(backend->counted(), search.planned());
    backend->clear();
    if (again) {
      batch = (count + 1) / 2;
      continue;
    }
    if (!fits) counts_only = true;
    if (counts_only) backend->only_count();
    first += count;
  }
  if (counts_only) throw_too_many(found, search.planned());
  meter.finish();
}

void write_hits(Metric metric, const CollectedHits& hits, const uint32_t* numbers, int64_t* ids, float* distances,
                const Resources& resources) {
  constexpr int64_t kHitsPerTask = 1 << 14;
  const uint64_t* const neighbors = hits.neighbors();
  const Resources quiet = resources.with_progress({});
  ProgressMeter meter("write", hits.size(), quiet);
  const ResultExit result(metric, numbers);
  parallel_for(divide_up(hits.size(), kHitsPerTask), meter, resources, [&](int64_t task, int) {
    for (int64_t i = task * kHitsPerTask; i < std::min((task + 1) * kHitsPerTask, hits.size()); ++i) {
      ids[i] = result.id(neighbors[i]);
      distances[i] = result.distance(neighbors[i]);
    }
  });
}

}  // namespace

SearchShape check_range(const RowsInfo& queries, const RowsInfo& base, const RangeParams& params) {
  params.validate();
  return check_search(queries, base, params.metric);
}

RangeNeighbors search_range(const SearchShape& shape, const RangeParams& params, const SearchInput& input,
                            const Resources& resources) {
  std::vector<CollectedHits> parts;
  int64_t found = 0;
  for_each_batch(shape, params, input, WhenFull::count, resources,
                 [&](int64_t, CollectedHits hits, const uint32_t* rows) {
                   if (rows != nullptr) {  // the list of kept rows is gone when the parts are put together
                     uint64_t* const neighbors = hits.neighbors();
                     for (int64_t i = 0; i < hits.size(); ++i) {
                       neighbors[i] = pack_neighbor(ordered_of(neighbors[i]), rows[row_of(neighbors[i])]);
                     }
                   }
                   found += hits.size();
                   parts.push_back(std::move(hits));
                 });
  RangeNeighbors result(shape.queries, found, resources);
  std::fill_n(result.offsets(), shape.queries + 1, int64_t{0});
  int64_t query = 0;
  int64_t at = 0;
  for (CollectedHits& part : parts) {
    write_hits(shape.metric, part, nullptr, result.ids() + at, result.distances() + at, resources);
    for (int64_t q = 0; q < part.queries(); ++q) {
      result.offsets()[++query] = at + part.offsets()[q + 1];
    }
    at += part.size();
    part = CollectedHits();
  }
  return result;
}

void search_range(const SearchShape& shape, const RangeParams& params, const SearchInput& input, const RangeSink& sink,
                  const Resources& resources) {
  int64_t told = 0;
  for_each_batch(shape, params, input, WhenFull::smaller_batches, resources,
                 [&](int64_t first, const CollectedHits& hits, const uint32_t* rows) {
                   RangeNeighbors part(hits.queries(), hits.size(), resources);
                   std::copy_n(hits.offsets(), hits.queries() + 1, part.offsets());
                   write_hits(shape.metric, hits, rows, part.ids(), part.distances(), resources);
                   sink(first, part.view());
                   told = first + hits.queries();
                 });
  for (const int64_t nothing[2] = {0, 0}; told < shape.queries; ++told) sink(told, {nothing, nullptr, nullptr, 1});
}

}  // namespace kith
