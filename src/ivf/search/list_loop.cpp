#include "ivf/search/list_loop.hpp"

#include "core/byte_size.hpp"
#include "core/float_mode.hpp"
#include "core/host_array.hpp"
#include "core/named_limit.hpp"
#include "core/result_exit.hpp"
#include "core/reused_memory.hpp"
#include "exact/range_loop.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace kith {
namespace {

ListsRound first_round(const ListSearcher& searcher, const MatrixView& queries, MemorySpace result_space) {
  return {queries.rows(), searcher.task().probes, false, queries.dtype(), queries.space(), result_space};
}

// Calls use(backend, numbers of the batch's queries, room for their packed neighbours, meter) for batch after batch.
template <typename Use>
void for_each_batch(const ListSearcher& searcher, const MatrixView& queries, MemorySpace result_space,
                    const Resources& resources, const Use& use) {
  const DefaultFloatMode mode;
  const int64_t packed_each = result_space.host_readable() ? searcher.task().k : 0;
  ReusedVector<uint32_t> pending(static_cast<size_t>(queries.rows()));
  std::iota(pending.begin(), pending.end(), 0u);
  ProgressMeter meter("search", queries.rows(), resources);
  ListsRound round = first_round(searcher, queries, result_space);
  while (!pending.empty()) {
    const Planned<ListsPlan> planned = plan_and_reserve<ListsPlan>(
        "a search of the lists", [&](const PlanBudget& budget) { return searcher.plan(round, budget); }, resources);
    const auto batch = static_cast<size_t>(batches_of(planned.plan).query_batch);
    const std::unique_ptr<ListsBackend> backend = searcher.begin(round, planned.plan, planned.resources());
    const HostArray<uint64_t> packed(static_cast<int64_t>(std::min(batch, pending.size())) * packed_each,
                                     "the neighbours found", planned.resources());
    ReusedVector<uint32_t> short_ones;
    for (size_t first = 0; first < pending.size(); first += batch) {
      meter.poll();
      const std::span numbers(pending.data() + first, std::min(batch, pending.size() - first));
      backend->load(queries, numbers);
      const std::vector<uint32_t> left_out = backend->rank();
      for (const uint32_t place : left_out) short_ones.push_back(numbers[place]);
      if (left_out.size() == numbers.size()) continue;
      use(*backend, numbers, packed.data(), meter);
      meter.add(static_cast<int64_t>(numbers.size() - left_out.size()));
    }
    pending = std::move(short_ones);
    round.queries = static_cast<int64_t>(pending.size());
    round.slots = std::min(4 * round.slots, searcher.lists());
    round.again = true;
  }
  meter.finish();
}

}  // namespace

// Results of queries with too few vectors are overwritten by a later round.
void search_lists(const ListSearcher& searcher, const MatrixView& queries, const NeighborsView& out,
                  const Resources& resources) {
  if (counts_only(resources)) return count_work(searcher.least(first_round(searcher, queries, out.space)), resources);
  const ResultExit exit(searcher.metric());
  for_each_batch(searcher, queries, out.space, resources,
                 [&](ListsBackend& backend, std::span<const uint32_t> numbers, uint64_t* packed, ProgressMeter& meter) {
                   if (!out.space.host_readable()) return backend.nearest_on_device(out, meter);
                   backend.nearest(packed, meter);
                   for (size_t i = 0; i < numbers.size(); ++i) {
                     const int64_t to = int64_t{numbers[i]} * out.k;
                     write_results(exit, packed + static_cast<int64_t>(i) * out.k, out.k, out.ids + to,
                                   out.distances + to);
                   }
                 });
}

RangeNeighbors range_search_lists(const ListSearcher& searcher, const MatrixView& queries, const Resources& resources) {
  const auto least = [&] { return searcher.least(first_round(searcher, queries, MemorySpace::host())); };
  if (counts_only(resources)) {
    count_work(least(), resources);
    return {};
  }
  RangeHits hits(resources);
  for_each_batch(searcher, queries, MemorySpace::host(), resources,
                 [&](ListsBackend& backend, std::span<const uint32_t>, uint64_t*, ProgressMeter& meter) {
                   backend.within(hits, meter);
                 });
  const Footprint found = RangeHits::footprint(hits.counted(), queries.rows(), resources.threads());
  const int64_t room = hits.counted() * 8 + 32 * (queries.rows() + 1);
  if (hits.overflowed() || room > resources.host_memory()->available()) {
    const int64_t count = hits.counted();
    hits.clear();
    throw NamedLimit("host", resources.host_memory()->used() + least().beside(found.times(2)).host,
                     fmt::format("{} vectors are in range, which takes {} beside the search, more than the host memory "
                                 "limit leaves; raise the limit, or lower the radius",
                                 count, format_bytes_up(found.host)));
  }
  const Resources quiet = resources.with_progress({});
  ProgressMeter collecting("collect", queries.rows(), quiet);
  std::vector<CollectedHits> parts;
  parts.push_back(hits.collect(queries.rows(), collecting));
  return write_hits(searcher.metric(), std::move(parts), nullptr, queries.rows(), resources);
}

}  // namespace kith
