#include "collection/tenants.hpp"

#include <kith/error.hpp>

#include "collection/host_limit.hpp"
#include "collection/where.hpp"
#include "core/start_beside.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace kith {
namespace {

constexpr int64_t kRoundBytes = int64_t{64} << 20;
constexpr size_t kGroupsTogether = 64;  // between two looks at the bytes of a round

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

using SharedPlaces = std::shared_ptr<const TenantPlaces>;

// Runs the expression for some lists of parameters by several connections, each on a thread. Lists are taken in their
// order, so that an error is that of the first that has one.
class TenantQueries {
 public:
  // One list of parameters, and where what it keeps goes.
  struct Job {
    const std::vector<ColumnValue>* params;
    SharedPlaces* kept;
  };

  // `others`: what other conditions keep; may be null.
  TenantQueries(const CollectionState& state, const ItemFilter& filter, const KeptItems* others, std::vector<Job> jobs)
      : state_(state), filter_(filter), others_(others), jobs_(std::move(jobs)) {}

  void run(const Resources& resources) {
    constexpr size_t kJobsOfAThread = 8;
    const size_t threads = std::min(static_cast<size_t>(resources.threads()), jobs_.size() / kJobsOfAThread);
    const Resources quiet = resources.with_cancel(resources.options().cancel);  // asks on the calling thread alone
    std::vector<std::future<void>> beside;
    for (size_t i = 1; i < threads; ++i) beside.push_back(start_beside([&] { work(quiet); }));
    work(resources);
    for (std::future<void>& one : beside) one.get();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void work(const Resources& resources) {
    size_t job = 0;  // an expression that cannot be prepared fails the first
    try {
      state_.reading([&](Database& db) {
        const DatabaseMemory counted(db, resources);
        std::vector<int64_t> unknown;
        {
          const std::vector<ColumnValue> none;
          WhereStatement where(
              db, {filter_.where, none, WhereRows::of_version_and_others, state_.version, filter_.time_limit}, resources);
          while ((job = next_++) < jobs_.size()) {
            *jobs_[job].kept = places_of(where, *jobs_[job].params, unknown, resources);
          }
        }
        state_.check_removed(db, unknown);
      });
    } catch (...) {
      next_ = jobs_.size();
      const std::lock_guard lock(mutex_);
      if (failure_ && failed_ <= job) return;
      failure_ = std::current_exception();
      failed_ = job;
    }
  }

  SharedPlaces places_of(WhereStatement& where, const std::vector<ColumnValue>& params, std::vector<int64_t>& unknown,
                         const Resources& resources) const {
    TenantPlaces places;
    for (const StatePart& part : state_.parts) places.parts.emplace_back(part);
    state_.for_living([&](const auto& row) { where.for_each(params, row); }, [&](size_t part, int64_t place) {
      if (others_ == nullptr || others_->parts[part].has(place)) places.parts[part].add(place, resources);
    }, unknown);
    for (KeptPlaces& kept : places.parts) kept.finish();
    return std::make_shared<const TenantPlaces>(std::move(places));
  }

  const CollectionState& state_;
  const ItemFilter& filter_;
  const KeptItems* others_;
  std::vector<Job> jobs_;
  std::atomic<size_t> next_ = 0;
  std::mutex mutex_;
  size_t failed_ = 0;
  std::exception_ptr failure_;
};

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

int64_t TenantPlaces::bytes() const {
  int64_t bytes = static_cast<int64_t>(sizeof(*this) + parts.size() * sizeof(KeptPlaces));
  for (const KeptPlaces& kept : parts) bytes += kept.bytes();
  return bytes;
}

int64_t TenantPlaces::list_bytes() const {
  int64_t bytes = static_cast<int64_t>(sizeof(*this) + parts.size() * sizeof(KeptPlaces));
  for (const KeptPlaces& kept : parts) bytes += kept.list_bytes();
  return bytes;
}

std::vector<const KeptPlaces*> TenantRound::of_part(size_t part) const {
  std::vector<const KeptPlaces*> kept;
  kept.reserve(groups.size());
  for (const auto& group : groups) kept.push_back(&group->parts[part]);
  return kept;
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
  const bool keeps = !limited && others == nullptr;
  const std::vector<std::vector<int64_t>> groups = same_params(filter.params_of_queries);
  const auto params_of = [&](size_t group) -> const std::vector<ColumnValue>& {
    return filter.params_of_queries[static_cast<size_t>(groups[group].front())];
  };
  for (size_t next = 0; next < groups.size();) {
    TenantRound round;
    for (int64_t bytes = 0; next < groups.size() && bytes < kRoundBytes;) {
      // Under a limit a round is one group.
      const size_t some = std::min(limited ? size_t{1} : kGroupsTogether, groups.size() - next);
      std::vector<SharedPlaces> places(some);
      std::vector<TenantQueries::Job> jobs;
      std::vector<std::pair<std::string, size_t>> fresh;
      for (size_t i = 0; i < some; ++i) {
        std::string key = keeps ? CollectionState::key_of(filter, params_of(next + i)) : "";
        if (keeps) places[i] = state.kept_tenant(key);
        if (places[i] != nullptr) continue;
        jobs.push_back({&params_of(next + i), &places[i]});
        if (keeps) fresh.emplace_back(std::move(key), i);
      }
      if (!jobs.empty()) TenantQueries(state, filter, others.get(), std::move(jobs)).run(resources);
      for (auto& [key, i] : fresh) state.keep_tenant(std::move(key), places[i], places[i]->bytes());
      for (size_t i = 0; i < some; ++i, ++next) {
        if (limited) round.counted.emplace_back(places[i]->list_bytes(), "the rows that filters keep", resources);
        bytes += places[i]->bytes();
        round.queries.insert(round.queries.end(), groups[next].begin(), groups[next].end());
        round.group_of.insert(round.group_of.end(), groups[next].size(), round.groups.size());
        round.groups.push_back(std::move(places[i]));
      }
      if (limited) break;
    }
    resources.check_cancelled();
    use(round);
  }
}

}  // namespace kith
