#include "collection/tenants.hpp"

#include <kith/error.hpp>

#include "collection/host_limit.hpp"
#include "collection/where.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

namespace kith {
namespace {

constexpr int64_t kRoundBytes = int64_t{64} << 20;

// Queries with the same parameters, in the order of the first of them.
std::vector<std::vector<int64_t>> same_params(const std::vector<std::vector<ColumnValue>>& params) {
  std::vector<std::vector<int64_t>> groups;
  std::map<std::vector<ColumnValue>, size_t> known;
  for (size_t q = 0; q < params.size(); ++q) {
    const auto [at, fresh] = known.emplace(params[q], groups.size());
    if (fresh) groups.emplace_back();
    groups[at->second].push_back(static_cast<int64_t>(q));
  }
  return groups;
}

// What one list of parameters keeps, as the next group of a round.
void add_group(const CollectionState& state, WhereStatement& where, const std::vector<ColumnValue>& params,
               const KeptItems* others, TenantRound& round, std::vector<int64_t>& unknown, const Resources& resources) {
  for (size_t p = 0; p < state.parts.size(); ++p) round.kept[p].emplace_back(state.parts[p]);
  state.for_living([&](const auto& row) { where.for_each(params, row); }, [&](size_t part, int64_t place) {
    if (others == nullptr || others->parts[part].has(place)) round.kept[part].back().add(place, resources);
  }, unknown);
  for (std::vector<KeptPlaces>& kept : round.kept) kept.back().finish();
}

// What the last group of a round takes.
int64_t last_group(const TenantRound& round, const auto& bytes_of) {
  int64_t bytes = 0;
  for (const std::vector<KeptPlaces>& kept : round.kept) bytes += static_cast<int64_t>(sizeof(KeptPlaces)) + bytes_of(kept.back());
  return bytes;
}

}  // namespace

void check_params_of_queries(const ItemFilter& filter, const MatrixView& queries) {
  if (filter.params_of_queries.empty()) return;
  if (filter.where.empty()) throw InvalidArgument("params belong to an expression, and where is empty");
  if (!filter.params.empty()) throw InvalidArgument("give params or params_of_queries, not both");
  if (static_cast<int64_t>(filter.params_of_queries.size()) != queries.rows()) {
    throw InvalidArgument(fmt::format("params_of_queries has {} lists for {} queries", filter.params_of_queries.size(),
                                      queries.rows()));
  }
  if (!queries.space().host_readable()) {
    throw InvalidArgument("queries with parameters of their own must be in host memory");
  }
}

void for_tenants(const CollectionState& state, const ItemFilter& filter, const Resources& resources,
                 const std::function<void(const TenantRound&)>& use) {
  std::shared_ptr<const KeptItems> others;  // what the other conditions keep, for all queries
  if (filter.ids || filter.mask) {
    ItemFilter same;
    same.ids = filter.ids;
    same.mask = filter.mask;
    others = state.keep(same, {}, resources);
  }
  const bool limited = is_limited(resources);
  const int64_t most = limited ? 1 : kRoundBytes;  // under a limit a round is one group
  const std::vector<std::vector<int64_t>> groups = same_params(filter.params_of_queries);
  for (size_t next = 0; next < groups.size();) {
    TenantRound round;
    round.kept.resize(state.parts.size());
    std::vector<int64_t> unknown;
    state.reading([&](Database& db) {
      const std::vector<ColumnValue> none;
      WhereStatement where(db, {filter.where, none, WhereRows::of_version_and_others, state.version, filter.time_limit}, resources);
      for (int64_t bytes = 0; next < groups.size() && (bytes == 0 || bytes < most); ++next) {
        const std::vector<ColumnValue>& params = filter.params_of_queries[static_cast<size_t>(groups[next].front())];
        const size_t number = state.parts.empty() ? 0 : round.kept.front().size();
        add_group(state, where, params, others.get(), round, unknown, resources);
        if (limited) {
          const int64_t lists = last_group(round, [](const KeptPlaces& kept) { return kept.list_bytes(); });
          round.counted.emplace_back(lists, "the rows that filters keep", resources);
        }
        bytes += last_group(round, [](const KeptPlaces& kept) { return kept.bytes(); });
        round.queries.insert(round.queries.end(), groups[next].begin(), groups[next].end());
        round.group_of.insert(round.group_of.end(), groups[next].size(), number);
      }
    });
    state.reading([&](Database& db) { state.check_removed(db, unknown); });
    resources.check_cancelled();
    use(round);
  }
}

}  // namespace kith
