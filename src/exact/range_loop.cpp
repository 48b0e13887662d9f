#include "exact/range_loop.hpp"

#include <kith/error.hpp>

#include "core/dispatch.hpp"
#include "core/float_mode.hpp"
#include "core/ordered_key.hpp"
#include "exact/metric_unit.hpp"
#include "exact/range_cpu.hpp"

#include <algorithm>

namespace kith {
namespace {

// Candidates of a query and a thread that are looked at together.
constexpr int64_t kListLength = 256;

Resources on_cpu(const Resources& resources) {
  if (resources.device().kind == DeviceKind::cuda) {
    throw Unsupported("range search runs on the CPU only; use device cpu or auto");
  }
  return resources.with_device(Device::cpu());
}

// Calls done(first query, hits, ids of the rows) for batch after batch.
template <typename Done>
void for_each_batch(KnnProblem problem, float radius, const SearchInput& input, const Resources& resources,
                    const Done& done) {
  const DefaultFloatMode mode;
  const PlannedSearch search(&problem, input, resources);
  if (!search.anything_left()) return;
  const KnnInput rows = search.input();
  const int64_t batch = search.planned().plan.query_batch;
  RangeCpu backend(problem, search.planned(), rows, key_of(problem.metric, radius), resources);
  rows.queries.open(batch, search.planned().resources());
  ProgressMeter meter("search", problem.queries * problem.rows, resources);
  for (int64_t first = 0; first < problem.queries; first += batch) {
    backend.begin(rows.queries.fetch(first, std::min(batch, problem.queries - first)), first);
    rows.walk([&](const MatrixView& base, int64_t first_row, const PreparedBase* ready) {
      backend.scan(base, first_row, ready, meter);
      meter.poll();
    });
    done(first, backend.finish(meter), rows.numbers);
  }
  meter.finish();
}

void write_hits(Metric metric, const CollectedHits& hits, const uint32_t* numbers, int64_t* ids, float* distances) {
  const uint64_t* const neighbors = hits.neighbors.as<uint64_t>();
  for (int64_t i = 0; i < hits.size(); ++i) {
    const uint32_t row = row_of(neighbors[i]);
    ids[i] = numbers == nullptr ? row : numbers[row];
    distances[i] = distance_of(metric, key_of_ordered(ordered_of(neighbors[i])));
  }
}

}  // namespace

KnnProblem check_range(const RowsInfo& queries, const RowsInfo& base, const RangeParams& params) {
  params.validate();
  KnnProblem problem = check_knn(queries, base, {kListLength, params.metric, params.check_finite});
  problem.result_k = 0;
  return problem;
}

RangeNeighbors search_range(KnnProblem problem, float radius, const SearchInput& input, const Resources& resources) {
  const Resources cpu = on_cpu(resources);
  std::vector<CollectedHits> parts;
  int64_t found = 0;
  for_each_batch(problem, radius, input, cpu, [&](int64_t, CollectedHits hits, const uint32_t* rows) {
    if (rows != nullptr) {  // the list of kept rows is gone when the parts are put together
      auto* const neighbors = hits.neighbors.as<uint64_t>();
      for (int64_t i = 0; i < hits.size(); ++i) {
        neighbors[i] = pack_neighbor(ordered_of(neighbors[i]), rows[row_of(neighbors[i])]);
      }
    }
    found += hits.size();
    parts.push_back(std::move(hits));
  });
  RangeNeighbors result(problem.queries, found, resources);
  std::fill_n(result.offsets(), problem.queries + 1, int64_t{0});
  int64_t query = 0;
  int64_t at = 0;
  for (CollectedHits& part : parts) {
    write_hits(problem.metric, part, nullptr, result.ids() + at, result.distances() + at);
    for (int64_t q = 0; q < part.queries(); ++q) {
      result.offsets()[++query] = at + part.offsets[static_cast<size_t>(q) + 1];
    }
    at += part.size();
    part = CollectedHits();
  }
  return result;
}

void search_range(KnnProblem problem, float radius, const SearchInput& input, const RangeSink& sink,
                  const Resources& resources) {
  int64_t told = 0;
  for_each_batch(problem, radius, input, on_cpu(resources),
                 [&](int64_t first, const CollectedHits& hits, const uint32_t* rows) {
                   RangeNeighbors part(hits.queries(), hits.size(), resources);
                   std::copy(hits.offsets.begin(), hits.offsets.end(), part.offsets());
                   write_hits(problem.metric, hits, rows, part.ids(), part.distances());
                   sink(first, part.view());
                   told = first + hits.queries();
                 });
  for (const int64_t nothing[2] = {0, 0}; told < problem.queries; ++told) sink(told, {nothing, nullptr, nullptr, 1});
}

}  // namespace kith
