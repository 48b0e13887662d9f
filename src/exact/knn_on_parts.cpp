#include "exact/knn_on_parts.hpp"

#include "core/divide.hpp"
#include "core/memory_budget.hpp"
#include "core/parallel_for.hpp"
#include "ranks/parts.hpp"
#include "ranks/transfer.hpp"

#include <algorithm>
#include <vector>

namespace kith {
namespace {

void put(const NeighborsView& found, int64_t first, const NeighborsView& out, const Resources& resources) {
  const int64_t values = found.queries * found.k;
  transfer(found.ids, array_bytes<int64_t>(values), out.ids + first * out.k, out.space, resources);
  transfer(found.distances, array_bytes<float>(values), out.distances + first * out.k, out.space, resources);
}

void deal_queries(const SharedKnn& job, const PartSearch& search, const NeighborsView& out,
                  const Resources& resources) {
  share_out(job.queries, 1, resources, [&](RankPart share, const Resources& part) {
    const RankPart rows{0, job.rows};
    const int64_t at = share.first * out.k;
    const NeighborsView own{out.ids + at, out.distances + at, share.count, out.k, out.space};
    if (writes_to(out.space, part)) return with_rows_from(share.first, 0, [&] { search(share, rows, own, part); });
    const PartNeighbors found(share.count, out.k, part);
    with_rows_from(share.first, 0, [&] { search(share, rows, found.view, part); });
    put(found.view, share.first, out, part);
  });
}

void join(const std::vector<FoundInPart>& found, Metric metric, const NeighborsView& out, const Resources& given) {
  const Resources resources = given.with_progress({});
  constexpr int64_t kQueriesPerTask = 64;
  ProgressMeter meter("join", out.queries, resources);
  parallel_for(divide_up(out.queries, kQueriesPerTask), meter, resources, [&](int64_t task, int) {
    const int64_t first = task * kQueriesPerTask;
    const int64_t count = std::min(kQueriesPerTask, out.queries - first);
    std::vector<FoundInPart> some = found;
    for (FoundInPart& part : some) {
      part.ids += first * part.width;
      part.distances += first * part.width;
    }
    join_neighbors(some, metric, {out.ids + first * out.k, out.distances + first * out.k, count, out.k, {}});
  });
}

void deal_rows(const SharedKnn& job, const PartSearch& search, const NeighborsView& out, const Resources& resources) {
  std::vector<PartNeighbors> parts;
  std::vector<FoundInPart> found;
  for (int i = 0; i < resources.parts(); ++i) {
    const RankPart rows = part_of(job.rows, 1, i, resources.parts());
    const NeighborsView view = parts.emplace_back(job.queries, std::min(out.k, rows.count), resources).view;
    found.push_back({view.ids, view.distances, view.k, rows.first});
  }
  run_parts(resources, [&](Communicator& ranks, const Resources& part) {
    const RankPart rows = part_of(job.rows, 1, ranks.rank(), ranks.size());
    const RankPart queries{0, job.queries};
    if (rows.count == 0) return;
    with_rows_from(0, rows.first, [&] { search(queries, rows, parts[static_cast<size_t>(ranks.rank())].view, part); });
  });
  join_parts(found, job.metric, out, resources);
}

// Whether all parts are of the device where the rows lie. Many queries are divided there, so that the first k of
// each are looked for once. Rows are divided for fewer, since each part that searches a row makes it ready for
// products, and under a limit, which takes less memory.
bool prefers_dividing_queries(const SearchShape& shape, std::optional<Device> lie_on, const Resources& resources) {
  if (!lie_on) return false;
  const bool on_cpu = lie_on->kind == DeviceKind::cpu;
  if ((on_cpu ? resources.host_memory() : resources.device_memory())->promised()) return false;
  const int64_t many = on_cpu ? 64 : 1024;  // queries of a part
  constexpr int64_t kRowsPerQuery = 64;  // of a CPU: more take longer to be made ready than to be selected from again
  if (shape.queries < many * resources.parts() || (on_cpu && shape.queries < shape.rows / kRowsPerQuery)) return false;
  const std::vector<DeviceParts> devices = resources.devices();
  return std::all_of(devices.begin(), devices.end(), [&](const DeviceParts& one) { return one.device == *lie_on; });
}

}  // namespace

void join_parts(const std::vector<FoundInPart>& found, Metric metric, const NeighborsView& out,
                const Resources& resources) {
  if (out.space.host_readable()) return join(found, metric, out, resources);
  const PartNeighbors joined(out.queries, out.k, resources);
  join(found, metric, joined.view, resources);
  put(joined.view, 0, out, resources);
}

bool deals_rows(const SearchShape& shape, int64_t k, bool filters, int size) {
  if (filters || size == 1) return false;
  if (shape.queries < size) return true;
  const auto bytes = [](double rows, int64_t row_bytes) { return rows * static_cast<double>(row_bytes); };
  const double ranks = size;
  const double base = bytes(static_cast<double>(shape.rows), shape.base_info().row_bytes());
  const auto queries = static_cast<double>(shape.queries);
  const double exchanged = queries * static_cast<double>(std::min(k, shape.rows) * kNeighborBytes);
  return base + ranks * bytes(queries, shape.query_info().row_bytes()) + 2 * ranks * exchanged < ranks * base;
}

SharedKnn shared_knn(const SearchShape& shape, int64_t k, bool filters, std::optional<Device> lie_on,
                     const Resources& resources) {
  constexpr int64_t kMostFound = int64_t{1} << 30;  // bytes that all parts have found for all queries
  const int64_t found = saturating_multiply(saturating_multiply(shape.queries, std::min(k, shape.rows)),
                                            kNeighborBytes * resources.parts());
  const bool fits = found <= std::min(kMostFound, resources.host_memory()->available() / 4);
  const bool deals =
      fits && !prefers_dividing_queries(shape, lie_on, resources) && deals_rows(shape, k, filters, resources.parts());
  return {shape.queries, shape.rows, shape.metric, deals};
}

void knn_on_parts(const SharedKnn& job, const PartSearch& search, const NeighborsView& out,
                  const Resources& resources) {
  if (job.deals_rows) return deal_rows(job, search, out, resources);
  deal_queries(job, search, out, resources);
}

}  // namespace kith
