// The search of lists on the CPU: lists are ranked, each list's queries brought together, and lists scanned for all of
// them at once (list_scan.hpp), the nearest ones first.
#include "core/byte_size.hpp"
#include "core/divide.hpp"
#include "core/float_mode.hpp"
#include "core/footprint.hpp"
#include "core/host_array.hpp"
#include "core/infinity.hpp"
#include "core/ordered_key.hpp"
#include "core/result_exit.hpp"
#include "ivf/model/list_assignment.hpp"
#include "ivf/scan/list_scan.hpp"
#include "ivf/scan/probe_table.hpp"
#include "ivf/search/ivf_search.hpp"
#include "ivf/search/list_loop.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "kernels/select/smallest_values.hpp"
#include "rows/stored_row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <new>

namespace kith {
namespace {

constexpr int64_t kMostQueries = 1 << 14;   // of a batch
constexpr int64_t kMostTaskRows = 1 << 15;  // vectors of a task
constexpr int64_t kRangeListLength = 128;   // candidates are scored when a list is full

// What every batch of a search has.
struct ListsWish {
  int64_t list_length = 0;  // of candidates
  int64_t slots = 0;        // lists that are ranked
  int64_t k = 0;            // packed neighbours that are given out
};

// The arrays of a batch.
struct BatchMemory {
  BatchMemory(const IvfModel& model, const ListsWish& wish, int64_t queries, const Resources& resources)
      : capacity(queries),
        queries_as_floats(queries * model.cols(), "the queries", resources),
        inverse_norms(queries, "the queries' norms", resources),
        candidates(queries * CandidateList::bytes_for(wish.list_length), "the candidate lists", resources),
        locks(array_bytes<QueryLock>(queries), "the candidate lists", resources),
        thresholds(array_bytes<std::atomic<float>>(queries), "the candidate lists", resources),
        probes(queries, wish.slots, resources) {}

  CandidateList* lists() const { return candidates.as<CandidateList>(); }

  // Once there is memory.
  void construct(int64_t list_length) const {
    std::byte* const entries = candidates.data() + array_bytes<CandidateList>(capacity);
    const int64_t bytes = CandidateList::capacity_for(list_length) * CandidateList::kBytesPerCandidate;
    for (int64_t i = 0; i < capacity; ++i) new (lists() + i) CandidateList(entries + i * bytes, list_length);
    std::uninitialized_default_construct_n(locks.as<QueryLock>(), capacity);
    std::uninitialized_default_construct_n(thresholds.as<std::atomic<float>>(), capacity);
  }

  int64_t capacity;
  HostArray<float> queries_as_floats;
  HostArray<double> inverse_norms;
  HostBuffer candidates;
  HostBuffer locks;
  HostBuffer thresholds;
  ProbeTable probes;
};

// What threads sort the candidates of a list in.
class ThreadScratch {
 public:
  ThreadScratch(int64_t length, const Resources& resources)
      : memory_(resources.threads() * CandidateScratch::bytes_for(length), "selection", resources) {
    for (int slot = 0; slot < resources.threads(); ++slot) {
      all_.emplace_back(memory_.data() + slot * CandidateScratch::bytes_for(length), length);
    }
  }
  const CandidateScratch& operator[](int slot) const { return all_[static_cast<size_t>(slot)]; }

 private:
  HostBuffer memory_;
  std::vector<CandidateScratch> all_;
};

Footprint batch_footprint(const IvfModel& model, const ListsWish& wish, int64_t queries, const Resources& resources) {
  // Ranking plans with what it finds; some room makes it quick.
  constexpr int64_t kRankingRoom = int64_t{4} << 20;
  Footprint working = invert_footprint(queries, wish.slots, model.lists()).times(2);
  if (model.has_centres()) {
    working = working.then(rank_footprint(queries, wish.slots, resources)
                               .beside(array_footprint<float>(queries, 4 * model.cols()))
                               .beside({kRankingRoom}));
  }
  return footprint_of<BatchMemory>(resources, model, wish, queries)
      .beside(array_footprint<uint64_t>(queries, wish.k))
      .beside(working);
}

ListsCpuPlan plan_search(const IvfModel& model, const ListsWish& wish, int64_t queries, const PlanBudget& budget,
                         const Resources& resources) {
  ListsCpuPlan plan;
  plan.scan = ListProductShape::choose(model, queries, budget.cpu);
  const Footprint threads = ListScan::footprint(model, plan.scan, resources)
                                .times(budget.threads)
                                .beside(footprint_of<ThreadScratch>(resources, wish.list_length));
  const auto bytes = [&](int64_t batch) { return threads.beside(batch_footprint(model, wish, batch, resources)).host; };
  plan.query_batch = std::min(queries, kMostQueries);
  plan.host_bytes = bytes(plan.query_batch);
  while (plan.query_batch > 1 && plan.host_bytes > budget.host) {
    plan.query_batch = divide_up(plan.query_batch, 2);
    plan.host_bytes = bytes(plan.query_batch);
  }
  if (plan.host_bytes > budget.host) {
    throw OutOfMemory(fmt::format("a search of the lists takes at least {}", format_bytes_up(plan.host_bytes)),
                      plan.host_bytes);
  }
  return plan;
}

CodeWords::Wanted wanted_words(const IvfModel& model, int64_t queries) {
  return ListProductShape::choose(model, queries, cpu_extensions()).wanted_words(model, queries);
}

// The smallest plan, with what the model keeps of its codewords. A limit may have queries searched a few at a time,
// which is planned otherwise.
Footprint least_search(const IvfModel& model, const ListsWish& wish, int64_t queries, const Resources& resources) {
  const auto of = [&](int64_t count) {
    return CodeWords::footprint(model.codec->format(), wanted_words(model, count))
        .beside(least_plan(
            [&](const PlanBudget& budget) { return ListsPlan(plan_search(model, wish, count, budget, resources)); },
            resources));
  };
  return of(queries).then(of(1));
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

// Keeps the k best of each list.
class NearestUser final : public CandidateUser {
 public:
  // `neighbors`: `stride` for each query, padded.
  NearestUser(int64_t k, int64_t stride, uint64_t* neighbors, const Resources& resources)
      : k_(k), stride_(stride), neighbors_(neighbors), scratch_(k, resources) {}
  float threshold(int64_t) const override { return kInfinity; }
  bool ties_may_count() const override { return true; }
  void make_room(CandidateList* list, int64_t, uint32_t, int slot, const RowScorer& score) override {
    lower(list);
    const bool nearly_full = list->size() > k_ + k_ / 4 + 16;  // it would be full again too soon
    if (nearly_full) list->make_room(scratch_[slot], score);
  }
  void finish(CandidateList* list, int64_t query, uint32_t, int slot, const RowScorer& score) override {
    const CandidateScratch& scratch = scratch_[slot];
    lower(list);
    const int64_t count = list->drain(0, scratch, score);
    std::sort(scratch.neighbors, scratch.neighbors + count);
    std::copy_n(scratch.neighbors, std::min(count, k_), neighbors_ + query * stride_);
  }

 private:
  // To a key that k candidates do not exceed.
  void lower(CandidateList* list) const {
    if (list->size() >= k_) list->lower_to(rank_value(list->upper(), list->size(), k_));
  }

  const int64_t k_;
  const int64_t stride_;
  uint64_t* const neighbors_;
  const ThreadScratch scratch_;
};

// Takes all that is in range.
class RangeUser final : public CandidateUser {
 public:
  RangeUser(std::span<const uint32_t> numbers, float most, RangeHits& hits, const Resources& resources)
      : numbers_(numbers), most_(most), hits_(hits), scratch_(kRangeListLength, resources) {}
  float threshold(int64_t) const override { return most_; }
  bool ties_may_count() const override { return true; }
  void make_room(CandidateList* list, int64_t query, uint32_t, int slot, const RowScorer& score) override {
    finish(list, query, 0, slot, score);
  }
  void finish(CandidateList* list, int64_t query, uint32_t, int slot, const RowScorer& score) override {
    const CandidateScratch& scratch = scratch_[slot];
    const int64_t count = list->drain(0, scratch, score);
    const uint32_t most = ordered_key(most_);
    int64_t within = 0;
    for (int64_t i = 0; i < count; ++i) {
      const uint64_t neighbor = scratch.neighbors[i];
      scratch.neighbors[within] = neighbor;
      within += ordered_of(neighbor) <= most;  // a NaN comes after every key
    }
    hits_.add(slot, numbers_[static_cast<size_t>(query)], scratch.neighbors, within);
  }

 private:
  const std::span<const uint32_t> numbers_;
  const float most_;
  RangeHits& hits_;
  const ThreadScratch scratch_;
};

// What all rounds of a search share.
struct CpuSearch {
  const ListedVectors& vectors;
  const ListsTask& task;
  const int64_t* sizes;  // kept vectors of each list; null: all count
  const ListTables& tables;

  int64_t list_length() const { return task.most ? kRangeListLength : task.fewest; }
};

class CpuBackend final : public ListsBackend {
 public:
  CpuBackend(const CpuSearch& search, int64_t slots, const ListsCpuPlan& plan, const Resources& resources)
      : search_(search),
        model_(search.vectors.model()),
        plan_(plan),
        resources_(resources),
        quiet_(resources.with_progress({})),
        memory_(model_, {search.list_length(), slots, search.task.k}, plan.query_batch, resources),
        probes_(memory_.probes) {
    memory_.construct(search.list_length());
  }

  void load(const MatrixView& queries, std::span<const uint32_t> numbers) override {
    const int64_t cols = model_.cols();
    numbers_ = numbers;
    probes_.queries = static_cast<int64_t>(numbers.size());
    for (int64_t i = 0; i < probes_.queries; ++i) {
      float* const query = memory_.queries_as_floats.data() + i * cols;
      widen_row(queries, numbers[static_cast<size_t>(i)], query);
      memory_.inverse_norms[i] = canonical_inverse_norm(canonical_squared_norm_cpu(query, cols));
    }
  }

  std::vector<uint32_t> rank() override {
    if (model_.has_centres()) {
      rank_lists(model_.metric, model_.centres.view(),
                 MatrixView(memory_.queries_as_floats.data(), probes_.queries, model_.cols()), probes_.width,
                 probes_.lists.data(), quiet_);
    } else {
      std::fill_n(probes_.lists.data(), probes_.queries, 0);
    }
    std::vector<uint32_t> left_out;
    for (int64_t i = 0; i < probes_.queries; ++i) {
      if (!choose_probes(i)) left_out.push_back(static_cast<uint32_t>(i));
    }
    return left_out;
  }

  void nearest(uint64_t* neighbors, ProgressMeter& meter) override {
    std::fill_n(neighbors, probes_.queries * search_.task.k, kPadding);
    NearestUser user(search_.list_length(), search_.task.k, neighbors, resources_);
    run(user, search_.list_length(), meter);
  }

  void within(RangeHits& hits, ProgressMeter& meter) override {
    RangeUser user(numbers_, *search_.task.most, hits, resources_);
    run(user, 0, meter);
  }

 private:
  // `k`: neighbours that lower a query's threshold; 0 where nothing does.
  void run(CandidateUser& user, int64_t k, ProgressMeter& meter) {
    auto* const thresholds = memory_.thresholds.as<std::atomic<float>>();
    for (int64_t q = 0; q < probes_.queries; ++q) {
      memory_.lists()[q].reset(user.threshold(q));
      thresholds[q] = user.threshold(q);
    }
    const ListScanContext context{search_.vectors,
                                  search_.tables,
                                  memory_.queries_as_floats.data(),
                                  memory_.inverse_norms.data(),
                                  k,
                                  memory_.lists(),
                                  memory_.locks.as<QueryLock>(),
                                  thresholds,
                                  user,
                                  search_.task.kept,
                                  meter};
    std::vector<std::unique_ptr<ListScan>> scans;
    for (int slot = 0; slot < resources_.threads(); ++slot) {
      scans.push_back(std::make_unique<ListScan>(context, plan_.scan, slot, resources_));
    }
    for (const ProbePart part : {ProbePart::first, ProbePart::rest}) {
      const ListVisits visits = invert_probes(probes_, part, model_.lists(), resources_);
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
    parallel_for(probes_.queries, meter, resources_,
                 [&](int64_t query, int slot) { scans[static_cast<size_t>(slot)]->finish(query); });
  }

  // How many lists the query visits; none, and false, where there are more to visit than were ranked.
  bool choose_probes(int64_t query) {
    const int64_t fewest = search_.task.most ? 0 : search_.task.fewest;
    int64_t held = 0;
    int64_t count = 0;
    int64_t first = 0;
    while (count < probes_.width && (count < search_.task.probes || held < fewest)) {
      const int64_t list = probes_.list(query, count++);
      held += search_.sizes == nullptr ? size_of(list) : search_.sizes[list];
      if (first == 0 && held >= search_.list_length()) first = count;
    }
    const bool enough = held >= fewest || probes_.width == model_.lists();
    if (!enough) count = 0;
    probes_.counts[query] = static_cast<int32_t>(count);
    probes_.firsts[query] = static_cast<int32_t>(first == 0 || search_.task.most ? count : first);
    return enough;
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
      for (size_t s = 0; s < search_.vectors.segments().size(); ++s) {
        const ListSegment& segment = *search_.vectors.segments()[s];
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
    for (const Segment& segment : search_.vectors.segments()) size += segment->size_of(list);
    return size;
  }

  const CpuSearch search_;
  const IvfModel& model_;
  const ListsCpuPlan plan_;
  const Resources resources_;
  const Resources quiet_;
  BatchMemory memory_;
  ProbeTable& probes_;
  std::span<const uint32_t> numbers_;
};

class CpuSearcher final : public ListSearcher {
 public:
  // The task says how many vectors a query's lists must hold where nearest ones are wanted.
  CpuSearcher(const ListedVectors& vectors, const ListsTask& task, const int64_t* sizes, int64_t queries,
              const Resources& resources)
      : vectors_(vectors),
        task_(task),
        sizes_(sizes),
        resources_(resources),
        tables_(vectors.model(), origin_of(vectors), wanted_words(vectors.model(), queries), resources) {}

  const ListsTask& task() const override { return task_; }
  Metric metric() const override { return vectors_.model().metric; }
  int64_t lists() const override { return vectors_.model().lists(); }

  ListsPlan plan(const ListsRound& round, const PlanBudget& budget) const override {
    return plan_search(vectors_.model(), wish(round.slots), round.queries, budget, resources_);
  }
  std::unique_ptr<ListsBackend> begin(const ListsRound& round, const ListsPlan& plan,
                                      const Resources& planned) const override {
    return std::make_unique<CpuBackend>(search(), round.slots, std::get<ListsCpuPlan>(plan), planned);
  }

 private:
  CpuSearch search() const { return {vectors_, task_, sizes_, tables_}; }
  ListsWish wish(int64_t slots) const { return {task_.most ? kRangeListLength : task_.fewest, slots, task_.k}; }

  static std::vector<float> origin_of(const ListedVectors& vectors) {
    const IvfModel& model = vectors.model();
    if (model.has_centres() || !has_differences(key_kind(model.metric))) return {};
    return mean_of_vectors(vectors);
  }

  const ListedVectors& vectors_;
  const ListsTask task_;
  const int64_t* const sizes_;
  const Resources& resources_;
  const ListTables tables_;
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

// Calls search(searcher), unless there is nothing to find.
template <typename Search>
void search_nearest(const IvfModel& model, const std::vector<Segment>& segments, const MatrixView& queries,
                    const IvfSearch& wanted, const Resources& resources, const Search& search) {
  const DefaultFloatMode mode;
  check_input(model, segments, queries, wanted.probes);
  if (wanted.k < 1) throw InvalidArgument(fmt::format("k = {}; at least one neighbour must be asked for", wanted.k));
  const ListedVectors vectors(model, segments);
  const HostArray<int64_t> sizes = kept_sizes(model, segments, wanted.kept, resources);
  int64_t kept = wanted.kept == nullptr ? vectors.size() : 0;
  for (const int64_t size : sizes) kept += size;
  if (kept == 0 || queries.rows() == 0) return;
  const ListsTask task{.k = wanted.k,
                       .probes = std::min(wanted.probes, model.lists()),
                       .kept = wanted.kept,
                       .fewest = std::min(wanted.k, kept)};
  search(CpuSearcher(vectors, task, sizes.data(), queries.rows(), resources));
}

}  // namespace

void search_ivf(const IvfModel& model, const std::vector<Segment>& segments, const MatrixView& queries,
                const IvfSearch& search, uint64_t* neighbors, const Resources& resources) {
  std::fill_n(neighbors, queries.rows() * std::max<int64_t>(search.k, 0), kPadding);
  search_nearest(model, segments, queries, search, resources,
                 [&](const ListSearcher& searcher) { search_lists(searcher, queries, neighbors, resources); });
}

void search_ivf(const IvfModel& model, const std::vector<Segment>& segments, const MatrixView& queries,
                const IvfSearch& search, const NeighborsView& out, const Resources& resources) {
  const ResultExit exit(model.metric);
  std::fill_n(out.ids, out.queries * out.k, exit.id(kPadding));
  std::fill_n(out.distances, out.queries * out.k, exit.distance(kPadding));
  search_nearest(model, segments, queries, search, resources,
                 [&](const ListSearcher& searcher) { search_lists(searcher, queries, out, resources); });
}

Footprint search_ivf_footprint(const IvfModel& model, int64_t rows, const IvfSearch& search, bool filtered,
                               int64_t queries, const Resources& resources) {
  const ListsWish wish{std::min(search.k, rows), std::min(search.probes, model.lists()), search.k};
  return array_footprint<int64_t>(filtered ? model.lists() : 0).beside(least_search(model, wish, queries, resources));
}

CollectedHits range_search_ivf(const IvfModel& model, const std::vector<Segment>& segments, const MatrixView& queries,
                               const IvfRange& range, const Resources& resources) {
  const DefaultFloatMode mode;
  check_input(model, segments, queries, range.probes);
  const ListedVectors vectors(model, segments);
  RangeHits hits(resources);
  if (vectors.size() > 0 && queries.rows() > 0) {
    const ListsTask task{.most = range.most, .probes = std::min(range.probes, model.lists()), .kept = range.kept};
    range_search_lists(CpuSearcher(vectors, task, nullptr, queries.rows(), resources), queries, hits, resources);
  }
  const int64_t search_bytes =
      hits.overflowed() ? range_search_ivf_footprint(model, range.probes, queries.rows(), resources).host : 0;
  return collect_in_range(hits, queries.rows(), search_bytes, resources);
}

Footprint range_search_ivf_footprint(const IvfModel& model, int64_t probes, int64_t queries,
                                     const Resources& resources) {
  constexpr int64_t kFirstHits = 64 << 10;  // of a thread: its first two segments
  const ListsWish wish{kRangeListLength, std::min(probes, model.lists()), 0};
  Footprint needed = least_search(model, wish, queries, resources)
                         .beside(array_footprint<std::byte>(resources.threads(), kFirstHits))
                         .beside(array_footprint<std::byte>(queries + 1, 64));
  needed.at_least = true;
  return needed;
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
