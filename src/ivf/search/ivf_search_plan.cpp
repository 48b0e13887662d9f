#include "ivf/search/ivf_search_plan.hpp"

#include <kith/error.hpp>

#include "core/byte_size.hpp"
#include "core/divide.hpp"
#include "core/named_limit.hpp"
#include "ivf/model/list_assignment.hpp"
#include "ivf/scan/list_scan.hpp"
#include "ivf/scan/probe_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

namespace kith {
namespace {

constexpr int64_t kMostQueries = 1 << 14;  // of a batch

int64_t batch_bytes(const IvfModel& model, const IvfWish& wish, int64_t queries) {
  const int64_t cols = model.cols();
  const int64_t per_query = CandidateList::bytes_for(wish.list_length) +
                            static_cast<int64_t>(sizeof(QueryLock) + sizeof(std::atomic<float>)) +
                            array_bytes<float>(cols) + array_bytes<double>(1) + array_bytes<int64_t>(1);
  // Ranking plans with what it finds; some room makes it quick.
  const int64_t ranking = model.has_centres() ? rank_bytes(queries, wish.probes) + (int64_t{4} << 20) +
                                                    4 * queries * array_bytes<float>(cols)
                                              : 0;
  return queries * per_query + ProbeTable::bytes_for(queries, wish.probes) +
         std::max(ranking, 2 * invert_bytes(queries, wish.probes, model.lists()));
}

}  // namespace

IvfPlan plan_search(const IvfModel& model, const IvfWish& wish, int64_t queries, const PlanBudget& budget) {
  IvfPlan plan;
  plan.scan = ListProductShape::choose(model, queries, budget.cpu);
  const int64_t per_thread =
      ListScan::bytes_for(plan.scan, model.codec->format()) + CandidateScratch::bytes_for(wish.list_length);
  const int64_t fixed = budget.threads * per_thread;
  const auto bytes = [&](int64_t batch) { return fixed + batch_bytes(model, wish, batch); };
  plan.query_batch = std::min(queries, kMostQueries);
  while (plan.query_batch > 1 && bytes(plan.query_batch) > budget.host) {
    plan.query_batch = divide_up(plan.query_batch, 2);
  }
  plan.host_bytes = bytes(plan.query_batch);
  if (plan.host_bytes > budget.host) {
    throw OutOfMemory(fmt::format("a search of the lists takes at least {}", format_bytes_up(plan.host_bytes)),
                      plan.host_bytes);
  }
  return plan;
}

int64_t least_bytes(const IvfModel& model, const IvfWish& wish, int64_t queries, const Resources& resources) {
  PlanBudget nothing = budget_left(resources);
  nothing.host = 0;
  const CodeWords::Wanted wanted = ListProductShape::choose(model, queries, nothing.cpu).wanted_words(model, queries);
  const int64_t words = wanted.columns || wanted.rounded ? CodeWords::bytes_for(model.codec->format(), wanted) : 0;
  try {
    return words + plan_search(model, wish, queries, nothing).host_bytes;
  } catch (const OutOfMemory& error) {
    return words + error.bytes_needed();
  }
}

CodeWords::Wanted keep_words(const IvfModel& model, const IvfWish& wish, int64_t queries, const Resources& resources) {
  const PlanBudget budget = budget_left(resources);
  const CodeWords::Wanted wanted = ListProductShape::choose(model, queries, budget.cpu).wanted_words(model, queries);
  if (!wanted.columns && !wanted.rounded) return wanted;
  const auto needed = [&] { return least_bytes(model, wish, queries, resources); };
  naming_host_limit(needed, resources, [&] { model.words->get(*model.codec, wanted, resources); });
  return wanted;
}

}  // namespace kith
