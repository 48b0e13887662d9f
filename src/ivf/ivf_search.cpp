#include "ivf/ivf_search.hpp"

#include <kith/error.hpp>

#include "core/byte_size.hpp"
#include "core/cpu_target.hpp"
#include "core/divide.hpp"
#include "core/float_mode.hpp"
#include "core/ordered_key.hpp"
#include "core/planned.hpp"
#include "ivf/list_assignment.hpp"
#include "ivf/list_scan.hpp"
#include "ivf/probe_table.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "kernels/lists/rank_value.hpp"
#include "rows/stored_row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <new>
#include <optional>

namespace kith {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int64_t kMostQueries = 1 << 14;   // of a batch
constexpr int64_t kRangeListLength = 128;   // candidates are scored when a list is full
constexpr int64_t kMostTaskRows = 1 << 15;  // vectors of a task

struct IvfPlan {
  int64_t query_batch = 0;
  ListProductShape scan;
  int64_t host_bytes = 0;
  int64_t device_bytes = 0;
};

// What a search wants of every batch.
struct Wish {
  int64_t list_length = 0;  // of candidates
  int64_t probes = 0;       // lists that are ranked
  int64_t fewest = 0;       // kept vectors that a query's lists must hold, where all lists do
  bool lowers = true;       // the k best so far lower a query's threshold
  int64_t asked = 0;        // probes that the caller asked for
};

int64_t batch_bytes(const IvfModel& model, const Wish& wish, int64_t queries) {
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

IvfPlan plan_search(const IvfModel& model, const Wish& wish, int64_t queries, const PlanBudget& budget) {
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

// Kept vectors of each list, where some are left out: else the segments say how many a list has, and a search of one
// query does not look at every list.
HostArray<int64_t> kept_sizes(const IvfModel& model, const std::vector<Segment>& segments, const uint64_t* kept,
                              const Resources& resources) {
  if (kept == nullptr) return {};
  HostArray<int64_t> sizes(model.lists(), "the lists' sizes", resources);
  const Resources quiet = resources.with_progress({});
  ProgressMeter meter("filter", model.lists(), quiet);
  constexpr int64_t kListsPerTask = 64;
  parallel_for(divide_up(model.lists(), kListsPerTask), meter, quiet, [&](int64_t task, int) {
    for (int64_t list = task * kListsPerTask; list < std::min((task + 1) * kListsPerTask, model.lists()); ++list) {
      int64_t size = 0;
      for (const Segment& segment : segments) {
        for (int64_t i = segment->offsets()[list]; i < segment->offsets()[list + 1]; ++i) {
          size += keeps(kept, segment->rows()[i]);
        }
      }
      sizes[list] = size;
    }
  });
  return sizes;
}

// A vector near those of a list without a centre.
std::vector<float> mean_of_vectors(const ListedVectors& vectors) {
  constexpr int64_t kSample = 256;
  const int64_t cols = vectors.model().cols();
  std::vector<double> sums(static_cast<size_t>(cols), 0.0);
  std::vector<float> mean(static_cast<size_t>(cols), 0.0f);
  const int64_t count = std::min(kSample, vectors.size());
  for (int64_t i = 0; i < count; ++i) {
    auto place = static_cast<uint32_t>(vectors.size() * i / count);
    vectors.decode(&place, 1, mean.data());
    for (int64_t c = 0; c < cols; ++c) sums[static_cast<size_t>(c)] += mean[static_cast<size_t>(c)];
  }
  for (int64_t c = 0; c < cols; ++c) {
    const double value = count == 0 ? 0.0 : sums[static_cast<size_t>(c)] / static_cast<double>(count);
    mean[static_cast<size_t>(c)] = std::isfinite(value) ? static_cast<float>(value) : 0.0f;
  }
  return mean;
}

// The search of batch after batch, whatever is made of the candidates.
class BatchSearch {
 public:
  // The words have been made.
  BatchSearch(const ListedVectors& vectors, std::vector<float> origin, const CodeWords::Wanted& words,
              const int64_t* sizes, const uint64_t* kept, const Wish& wish, const IvfPlan& plan,
              const Resources& resources)
      : vectors_(vectors),
        tables_(vectors.model(), std::move(origin), words, resources),
        sizes_(sizes),
        kept_(kept),
        wish_(wish),
        plan_(plan),
        resources_(resources),
        quiet_(resources.with_progress({})),
        queries_(plan.query_batch * vectors.model().cols(), "the queries", resources),
        inverse_norms_(plan.query_batch, "the queries' norms", resources),
        list_memory_(plan.query_batch * CandidateList::bytes_for(wish.list_length), "the candidate lists", resources),
        locks_(static_cast<size_t>(plan.query_batch)),
        thresholds_(static_cast<size_t>(plan.query_batch)),
        probes_(plan.query_batch, wish.probes, resources) {
    std::byte* const candidates = list_memory_.data() + array_bytes<CandidateList>(plan.query_batch);
    const int64_t bytes = CandidateList::capacity_for(wish.list_length) * CandidateList::kBytesPerCandidate;
    for (int64_t i = 0; i < plan.query_batch; ++i) {
      new (lists() + i) CandidateList(candidates + i * bytes, wish.list_length);
    }
  }

  // Takes in the queries with these numbers. Those whose lists hold too few vectors leave the batch for `short_ones`.
  void load(const MatrixView& queries, const int64_t* numbers, int64_t count, std::vector<int64_t>* short_ones) {
    const IvfModel& model = vectors_.model();
    const int64_t cols = model.cols();
    numbers_.assign(numbers, numbers + count);
    for (int64_t i = 0; i < count; ++i) widen_row(queries, numbers[i], queries_.data() + i * cols);
    if (model.has_centres()) {
      rank_lists(model.metric, model.centres.view(), MatrixView(queries_.data(), count, cols), wish_.probes,
                 probes_.lists.data(), quiet_);
    } else {
      std::fill_n(probes_.lists.data(), count, 0);
    }
    int64_t stay = 0;
    for (int64_t i = 0; i < count; ++i) {
      if (!choose_probes(i, stay)) {
        short_ones->push_back(numbers[i]);
        continue;
      }
      if (stay != i) {
        std::copy_n(queries_.data() + i * cols, cols, queries_.data() + stay * cols);
        numbers_[static_cast<size_t>(stay)] = numbers[i];
      }
      inverse_norms_[stay] = canonical_inverse_norm(canonical_squared_norm_cpu(queries_.data() + stay * cols, cols));
      ++stay;
    }
    probes_.queries = stay;
  }

  int64_t queries() const { return probes_.queries; }
  int64_t number(int64_t query) const { return numbers_[static_cast<size_t>(query)]; }

  void run(CandidateUser& user, ProgressMeter& meter) {
    for (int64_t q = 0; q < queries(); ++q) {
      lists()[q].reset(user.threshold(q));
      thresholds_[static_cast<size_t>(q)] = user.threshold(q);
    }
    const int64_t k = wish_.lowers ? wish_.list_length : 0;
    const ListScanContext context{
        vectors_, tables_, queries_.data(), inverse_norms_.data(), k, lists(), locks_.data(), thresholds_.data(), user,
        kept_,    meter};
    std::vector<std::unique_ptr<ListScan>> scans;
    for (int slot = 0; slot < resources_.threads(); ++slot) {
      scans.push_back(std::make_unique<ListScan>(context, plan_.scan, slot, resources_));
    }
    for (const ProbePart part : {ProbePart::first, ProbePart::rest}) {
      const ListVisits visits = invert_probes(probes_, part, vectors_.model().lists(), resources_);
      const std::vector<ListTask> tasks = cut(visits);
      const auto count = static_cast<int64_t>(tasks.size());
      std::vector<int64_t> groups = {0};
      const int64_t most = std::max<int64_t>(1, count / (2 * resources_.threads()));  // all threads have some
      while (groups.back() < count) {
        const int64_t first = groups.back();
        groups.push_back(first + ListScan::together(plan_.scan, tasks.data() + first, std::min(most, count - first)));
      }
      parallel_for(static_cast<int64_t>(groups.size()) - 1, meter, resources_, [&](int64_t group, int slot) {
        const int64_t first = groups[static_cast<size_t>(group)];
        scans[static_cast<size_t>(slot)]->run(tasks.data() + first, groups[static_cast<size_t>(group) + 1] - first);
      });
    }
    parallel_for(queries(), meter, resources_,
                 [&](int64_t query, int slot) { scans[static_cast<size_t>(slot)]->finish(query); });
  }

 private:
  CandidateList* lists() const { return list_memory_.as<CandidateList>(); }

  // How many lists the query at `from` visits, with its lists moved to `to`. False where there are more to visit than
  // were ranked.
  bool choose_probes(int64_t from, int64_t to) {
    const int64_t width = probes_.width;
    if (from != to) std::copy_n(probes_.lists.data() + from * width, width, probes_.lists.data() + to * width);
    int64_t held = 0;
    int64_t count = 0;
    int64_t first = 0;
    while (count < width && (count < wish_.asked || held < wish_.fewest)) {
      const int64_t list = probes_.list(to, count++);
      held += sizes_ == nullptr ? size_of(list) : sizes_[list];
      if (first == 0 && held >= wish_.list_length) first = count;
    }
    probes_.counts[to] = static_cast<int32_t>(count);
    probes_.firsts[to] = static_cast<int32_t>(first == 0 || !wish_.lowers ? count : first);
    return held >= wish_.fewest || width == vectors_.model().lists();
  }

  // Tasks of a block of queries and a range of a list's vectors in a segment.
  std::vector<ListTask> cut(const ListVisits& visits) const {
    std::vector<ListTask> tasks;
    int64_t work = 0;
    for (const ListVisit& visit : visits.lists)
      work += size_of(visit.list) * divide_up(visit.count, plan_.scan.query_block);
    constexpr int64_t kTasksPerThread = 8;
    const int64_t most =
        std::clamp(round_up(divide_up(work, kTasksPerThread * resources_.threads()), plan_.scan.piece_rows),
                   plan_.scan.piece_rows, kMostTaskRows);
    for (const ListVisit& visit : visits.lists) {
      for (size_t s = 0; s < vectors_.segments().size(); ++s) {
        const ListSegment& segment = *vectors_.segments()[s];
        const int64_t end = segment.offsets()[visit.list + 1];
        for (int64_t first = segment.offsets()[visit.list]; first < end; first += most) {
          for (int64_t q = 0; q < visit.count; q += plan_.scan.query_block) {
            tasks.push_back({s,
                             first,
                             std::min(first + most, end),
                             {visits.queries.data() + visit.first + q,
                              std::min(plan_.scan.query_block, visit.count - q), visit.list}});
          }
        }
      }
    }
    return tasks;
  }

  int64_t size_of(int64_t list) const {
    int64_t size = 0;
    for (const Segment& segment : vectors_.segments()) size += segment->size_of(list);
    return size;
  }

  const ListedVectors& vectors_;
  const ListTables tables_;
  const int64_t* const sizes_;
  const uint64_t* const kept_;
  const Wish wish_;
  const IvfPlan plan_;
  const Resources& resources_;
  const Resources quiet_;
  HostArray<float> queries_;
  HostArray<double> inverse_norms_;
  HostBuffer list_memory_;
  std::vector<QueryLock> locks_;
  std::vector<std::atomic<float>> thresholds_;
  ProbeTable probes_;
  std::vector<int64_t> numbers_;
};

// Keeps the k best of each list.
class NearestUser final : public CandidateUser {
 public:
  NearestUser(BatchSearch& batch, int64_t k, int64_t stride, uint64_t* neighbors, const Resources& resources)
      : batch_(batch),
        k_(k),
        stride_(stride),
        neighbors_(neighbors),
        memory_(resources.threads() * CandidateScratch::bytes_for(k), "selection", resources) {
    for (int slot = 0; slot < resources.threads(); ++slot) {
      scratch_.emplace_back(memory_.data() + slot * CandidateScratch::bytes_for(k), k);
    }
  }
  float threshold(int64_t) const override { return kInfinity; }
  bool ties_may_count() const override { return true; }
  void make_room(CandidateList* list, int64_t, uint32_t, int slot, const RowScorer& score) override {
    lower(list);
    const bool nearly_full = list->size() > k_ + k_ / 4 + 16;  // it would be full again too soon
    if (nearly_full) list->make_room(scratch_[static_cast<size_t>(slot)], score);
  }
  void finish(CandidateList* list, int64_t query, uint32_t, int slot, const RowScorer& score) override {
    const CandidateScratch& scratch = scratch_[static_cast<size_t>(slot)];
    lower(list);
    const int64_t count = list->drain(0, scratch, score);
    std::sort(scratch.neighbors, scratch.neighbors + count);
    std::copy_n(scratch.neighbors, std::min(count, k_), neighbors_ + batch_.number(query) * stride_);
  }

 private:
  // To a key that k candidates do not exceed.
  void lower(CandidateList* list) const {
    if (list->size() >= k_) list->lower_to(rank_value(list->upper(), list->size(), k_));
  }

  const BatchSearch& batch_;
  const int64_t k_;
  const int64_t stride_;
  uint64_t* const neighbors_;
  HostBuffer memory_;
  std::vector<CandidateScratch> scratch_;
};

// Takes all that is in range.
class RangeUser final : public CandidateUser {
 public:
  RangeUser(BatchSearch& batch, float most, RangeHits& hits, const Resources& resources)
      : batch_(batch),
        most_(most),
        hits_(hits),
        memory_(resources.threads() * CandidateScratch::bytes_for(kRangeListLength), "selection", resources) {
    for (int slot = 0; slot < resources.threads(); ++slot) {
      scratch_.emplace_back(memory_.data() + slot * CandidateScratch::bytes_for(kRangeListLength), kRangeListLength);
    }
  }
  float threshold(int64_t) const override { return most_; }
  bool ties_may_count() const override { return true; }
  void make_room(CandidateList* list, int64_t query, uint32_t, int slot, const RowScorer& score) override {
    finish(list, query, 0, slot, score);
  }
  void finish(CandidateList* list, int64_t query, uint32_t, int slot, const RowScorer& score) override {
    const CandidateScratch& scratch = scratch_[static_cast<size_t>(slot)];
    const int64_t count = list->drain(0, scratch, score);
    const uint32_t most = ordered_key(most_);
    int64_t within = 0;
    for (int64_t i = 0; i < count; ++i) {
      const uint64_t neighbor = scratch.neighbors[i];
      scratch.neighbors[within] = neighbor;
      within += ordered_of(neighbor) <= most;  // a NaN comes after every key
    }
    hits_.add(slot, batch_.number(query), scratch.neighbors, within);
  }

 private:
  const BatchSearch& batch_;
  const float most_;
  RangeHits& hits_;
  HostBuffer memory_;
  std::vector<CandidateScratch> scratch_;
};

void check_input(const IvfModel& model, const std::vector<Segment>& segments, const MatrixView& queries,
                 int64_t probes) {
  model.validate();
  if (probes < 1) throw InvalidArgument(fmt::format("probes = {}; at least one list must be searched", probes));
  if (queries.cols() != model.cols()) {
    throw InvalidArgument(fmt::format("the queries have {} columns and the index {}", queries.cols(), model.cols()));
  }
  for (const Segment& segment : segments) {
    if (segment->lists() == model.lists() && segment->code_bytes() == model.codec->format().bytes()) continue;
    throw InvalidArgument("the lists are not of this model");
  }
}

// The smallest plan, with what the model keeps of its codewords.
int64_t least_bytes(const IvfModel& model, const Wish& wish, int64_t queries, const Resources& resources) {
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

// Makes what the model keeps of its codewords for such searches.
CodeWords::Wanted keep_words(const IvfModel& model, const Wish& wish, int64_t queries, const Resources& resources) {
  const PlanBudget budget = budget_left(resources);
  const CodeWords::Wanted wanted = ListProductShape::choose(model, queries, budget.cpu).wanted_words(model, queries);
  if (!wanted.columns && !wanted.rounded) return wanted;
  const auto needed = [&] { return least_bytes(model, wish, queries, resources); };
  naming_host_limit(needed, resources, [&] { model.words->get(*model.codec, wanted, resources); });
  return wanted;
}

// Searches all queries: calls use(batch, resources of the plan, meter) for batch after batch, each with as many probes
// as it takes.
template <typename Use>
void for_each_batch(const ListedVectors& vectors, const MatrixView& queries, const uint64_t* kept, Wish wish,
                    const HostArray<int64_t>& sizes, const Resources& resources, const Use& use) {
  const IvfModel& model = vectors.model();
  const std::vector<float> origin =
      model.has_centres() || !has_differences(key_kind(model.metric)) ? std::vector<float>() : mean_of_vectors(vectors);
  wish.asked = std::min(wish.probes, model.lists());
  const CodeWords::Wanted words = keep_words(model, wish, queries.rows(), resources);
  std::vector<int64_t> pending(static_cast<size_t>(queries.rows()));
  for (size_t i = 0; i < pending.size(); ++i) pending[i] = static_cast<int64_t>(i);
  ProgressMeter meter("search", queries.rows(), resources);
  for (wish.probes = wish.asked; !pending.empty(); wish.probes = std::min(4 * wish.probes, model.lists())) {
    const auto count = static_cast<int64_t>(pending.size());
    const Planned<IvfPlan> planned = plan_and_reserve<IvfPlan>(
        [&](const PlanBudget& budget) { return plan_search(model, wish, count, budget); }, resources);
    BatchSearch batch(vectors, origin, words, sizes.data(), kept, wish, planned.plan, planned.resources());
    std::vector<int64_t> short_ones;
    for (int64_t first = 0; first < count; first += planned.plan.query_batch) {
      batch.load(queries, pending.data() + first, std::min(planned.plan.query_batch, count - first), &short_ones);
      use(batch, planned.resources(), meter);
      meter.add(batch.queries());
      meter.poll();
    }
    pending = std::move(short_ones);
  }
  meter.finish();
}

}  // namespace

void search_ivf(const IvfModel& model, const std::vector<Segment>& segments, const MatrixView& queries,
                const IvfSearch& search, uint64_t* neighbors, const Resources& resources) {
  const DefaultFloatMode mode;
  check_input(model, segments, queries, search.probes);
  if (search.k < 1) throw InvalidArgument(fmt::format("k = {}; at least one neighbour must be asked for", search.k));
  std::fill_n(neighbors, queries.rows() * search.k, kPadding);
  const ListedVectors vectors(model, segments);
  const HostArray<int64_t> sizes = kept_sizes(model, segments, search.kept, resources);
  int64_t kept = search.kept == nullptr ? vectors.size() : 0;
  for (const int64_t size : sizes) kept += size;
  if (kept == 0 || queries.rows() == 0) return;
  const int64_t k = std::min(search.k, kept);
  for_each_batch(vectors, queries, search.kept, {k, search.probes, k}, sizes, resources,
                 [&](BatchSearch& batch, const Resources& planned, ProgressMeter& meter) {
                   NearestUser user(batch, k, search.k, neighbors, planned);
                   batch.run(user, meter);
                 });
}

int64_t smallest_search_bytes(const IvfModel& model, int64_t rows, const IvfSearch& search, bool filtered,
                              int64_t queries, const Resources& resources) {
  const int64_t k = std::min(search.k, rows);
  const Wish wish{k, std::min(search.probes, model.lists()), k};
  const int64_t sizes = filtered ? array_bytes<int64_t>(model.lists()) : 0;
  // A limit may have them searched a few at a time, which is planned otherwise.
  return sizes + std::max(least_bytes(model, wish, queries, resources), least_bytes(model, wish, 1, resources));
}

CollectedHits range_search_ivf(const IvfModel& model, const std::vector<Segment>& segments, const MatrixView& queries,
                               const IvfRange& range, const Resources& resources) {
  const DefaultFloatMode mode;
  check_input(model, segments, queries, range.probes);
  const ListedVectors vectors(model, segments);
  RangeHits hits(resources);
  if (vectors.size() > 0 && queries.rows() > 0) {
    for_each_batch(vectors, queries, range.kept, {kRangeListLength, range.probes, 0, false}, {}, resources,
                   [&](BatchSearch& batch, const Resources& planned, ProgressMeter& meter) {
                     RangeUser user(batch, range.most, hits, planned);
                     batch.run(user, meter);
                   });
  }
  const int64_t search_bytes =
      hits.overflowed() ? smallest_range_bytes(model, range.probes, queries.rows(), resources) : 0;
  return collect_in_range(hits, queries.rows(), search_bytes, resources);
}

int64_t smallest_range_bytes(const IvfModel& model, int64_t probes, int64_t queries, const Resources& resources) {
  const Wish wish{kRangeListLength, std::min(probes, model.lists()), 0, false};
  const int64_t plan = std::max(least_bytes(model, wish, queries, resources), least_bytes(model, wish, 1, resources));
  constexpr int64_t kFirstHits = 64 << 10;  // of a thread: its first two segments
  return plan + resources.threads() * kFirstHits + 64 * (queries + 1);
}

CollectedHits collect_in_range(RangeHits& hits, int64_t queries, int64_t search_bytes, const Resources& resources) {
  const Resources quiet = resources.with_progress({});
  ProgressMeter collecting("collect", queries, quiet);
  const int64_t bytes = hits.counted() * RangeHits::kBytesPerHit + 32 * (queries + 1) +
                        resources.threads() * RangeHits::kLargestSegmentBytes;
  const auto room = hits.counted() * 8 + 32 * (queries + 1);
  if (hits.overflowed() || room > resources.host_memory()->available()) {
    const int64_t found = hits.counted();
    hits.clear();
    throw NamedLimit("host", resources.host_memory()->used() + search_bytes + 2 * bytes,
                     fmt::format("{} vectors are in range, which takes {} beside the search, more than the host memory "
                                 "limit leaves; raise the limit, or lower the radius",
                                 found, format_bytes_up(bytes)));
  }
  return hits.collect(queries, collecting);
}

}  // namespace kith
