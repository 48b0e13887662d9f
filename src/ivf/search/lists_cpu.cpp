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
#include "exact/range_loop.hpp"
#include "ivf/model/list_assignment.hpp"
#include "ivf/scan/list_scan.hpp"
#include "ivf/scan/list_screen.hpp"
#include "ivf/search/kept_vectors.hpp"
#include "ivf/search/list_loop.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "kernels/select/smallest_values.hpp"
#include "rows/kept_rows.hpp"
#include "rows/stored_row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <memory>
#include <new>
#include <numeric>

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

ListsCpuPlan plan_search(const IvfModel& model, const ListsWish& wish, int64_t queries, bool screened,
                         const PlanBudget& budget, const Resources& resources) {
  ListsCpuPlan plan;
  plan.scan = ListProductShape::choose(model, queries, budget.cpu, screened);
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
  return plan;
}

CodeWords::Wanted wanted_words(const IvfModel& model, int64_t queries, bool screened) {
  return ListProductShape::choose(model, queries, cpu_extensions(), screened).wanted_words(model, queries);
}

// The smallest plan, with what the model keeps of its codewords. A limit may have queries searched a few at a time,
// which is planned otherwise.
Footprint least_search(const IvfModel& model, const ListsWish& wish, int64_t queries, bool screened,
                       const Resources& resources) {
  const auto of = [&](int64_t count) {
    return CodeWords::footprint(model.codec->format(), wanted_words(model, count, screened))
        .beside(least_plan(
            [&](const PlanBudget& budget) {
              return PlanWithin{plan_search(model, wish, count, screened, budget, resources)};
            },
            resources));
  };
  return of(queries).then(of(1));
}

Footprint search_footprint(const IvfModel& model, int64_t rows, const IvfSearch& search, bool filtered, int64_t queries,
                           bool screened, const Resources& resources) {
  const int64_t slots = std::min(search.probes, model.lists());
  if (!search.most) {
    const ListsWish wish{std::min(search.k, rows), slots, search.k};
    return array_footprint<int64_t>(filtered ? model.lists() : 0)
        .beside(least_search(model, wish, queries, screened, resources));
  }
  constexpr int64_t kFirstHits = 64 << 10;  // of a thread: its first two segments
  Footprint needed = least_search(model, {kRangeListLength, slots, 0}, queries, screened, resources)
                         .beside(array_footprint<std::byte>(resources.threads(), kFirstHits))
                         .beside(array_footprint<std::byte>(queries + 1, 64));
  needed.at_least = true;
  return needed;
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
    const int64_t within = list->drain_within(0, most_, scratch, score);
    hits_.add(slot, numbers_[static_cast<size_t>(query)], scratch.neighbors, within);
  }

 private:
  const std::span<const uint32_t> numbers_;
  const float most_;
  RangeHits& hits_;
  const ThreadScratch scratch_;
};

constexpr int64_t kNotCounted = -1;

class CpuSearcher;
std::unique_ptr<ListsBackend> make_cpu_backend(const CpuSearcher& search, int64_t slots, const ListsCpuPlan& plan,
                                               const Resources& planned);

// A search on the CPU: what its rounds share.
class CpuSearcher final : public ListSearcher {
 public:
  // The task says how many vectors a query's lists must hold where nearest ones are wanted. `kept`: how many the filter
  // keeps, where there is one.
  CpuSearcher(const ListedVectors& vectors, const IvfSearch& task, int64_t kept, int64_t queries,
              const Resources& resources)
      : vectors_(vectors),
        task_(task),
        kept_(kept),
        resources_(resources),
        sizes_(wants_sizes(task) ? lists() : 0, "the lists' sizes", resources),
        tables_(model(), origin_of(vectors, queries), wanted_words(model(), queries, vectors.screened()), resources) {
    std::fill(sizes_.begin(), sizes_.end(), kNotCounted);
    if (compares_kept()) places_ = find_kept(vectors, task.kept, kept, resources);
  }

  const IvfSearch& task() const override { return task_; }
  Metric metric() const override { return model().metric; }
  int64_t lists() const override { return model().lists(); }
  const IvfModel& model() const { return vectors_.model(); }
  Footprint least(const ListsRound& first) const override {
    return search_footprint(model(), vectors_.size(), task_, task_.kept != nullptr, first.queries, vectors_.screened(),
                            resources_);
  }

  PlanWithin<ListsPlan> plan(const ListsRound& round, const PlanBudget& budget) const override {
    return {plan_search(model(), {list_length(), round.slots, task_.k}, round.queries, vectors_.screened(), budget,
                        resources_)};
  }
  std::unique_ptr<ListsBackend> begin(const ListsRound& round, const ListsPlan& plan,
                                      const Resources& planned) const override {
    return make_cpu_backend(*this, round.slots, std::get<ListsCpuPlan>(plan), planned);
  }

 private:
  friend class CpuBackend;

  // Whether the kept vectors are compared one by one, in the place of all lists: few are kept of them.
  bool compares_kept() const {
    return keeps_few(vectors_, task_, kept_) &&
           array_bytes<uint32_t>(kept_) <= resources_.host_memory()->available() / 4;
  }
  static bool wants_sizes(const IvfSearch& task) { return task.kept != nullptr && !task.most; }
  int64_t list_length() const { return task_.most ? kRangeListLength : task_.fewest; }

  // Where some lists are decoded.
  static std::vector<float> origin_of(const ListedVectors& vectors, int64_t queries) {
    const IvfModel& model = vectors.model();
    if (vectors.screened() && model.codec->format().copies_codewords()) return vectors.screen(0)->origin();
    if (model.has_centres() || !has_differences(key_kind(model.metric))) return {};
    const auto shape = ListProductShape::choose(model, queries, cpu_extensions(), vectors.screened());
    if (shape.engine_for(queries) == ListEngine::bytes) return {};
    return mean_of_vectors(vectors);
  }

  const ListedVectors& vectors_;
  const IvfSearch task_;
  const int64_t kept_;
  const Resources& resources_;
  HostArray<uint32_t> places_;      // of the kept vectors, where they are compared one by one
  const HostArray<int64_t> sizes_;  // kept vectors of each list that was ranked, where a filter leaves some out
  const ListTables tables_;
};

class CpuBackend final : public ListsBackend {
 public:
  CpuBackend(const CpuSearcher& search, int64_t slots, const ListsCpuPlan& plan, const Resources& resources)
      : search_(search),
        task_(search.task_),
        model_(search.model()),
        plan_(plan),
        resources_(resources),
        quiet_(resources.with_progress({})),
        memory_(model_, {search.list_length(), slots, task_.k}, plan.query_batch, resources),
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
    if (search_.places_.size() > 0) return {};
    if (model_.has_centres()) {
      rank_lists(model_.metric, model_.centres.view(),
                 MatrixView(memory_.queries_as_floats.data(), probes_.queries, model_.cols()), probes_.width,
                 probes_.lists.data(), quiet_);
    } else {
      std::fill_n(probes_.lists.data(), probes_.queries, 0);
    }
    if (search_.sizes_.size() > 0) count_kept();
    std::vector<uint32_t> left_out;
    for (int64_t i = 0; i < probes_.queries; ++i) {
      if (!choose_probes(i)) left_out.push_back(static_cast<uint32_t>(i));
    }
    return left_out;
  }

  void nearest(uint64_t* neighbors, ProgressMeter& meter) override {
    std::fill_n(neighbors, probes_.queries * task_.k, kPadding);
    NearestUser user(search_.list_length(), task_.k, neighbors, resources_);
    run(user, search_.list_length(), meter);
  }

  void within(RangeHits& hits, ProgressMeter& meter) override {
    RangeUser user(numbers_, *task_.most, hits, resources_);
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
    const ListScanContext context{search_.vectors_,
                                  search_.tables_,
                                  memory_.queries_as_floats.data(),
                                  memory_.inverse_norms.data(),
                                  k,
                                  memory_.lists(),
                                  memory_.locks.as<QueryLock>(),
                                  thresholds,
                                  user,
                                  task_.kept,
                                  meter};
    std::vector<std::unique_ptr<ListScan>> scans(static_cast<size_t>(resources_.threads()));
    const auto scan_of = [&](int slot) -> ListScan& {  // made by the thread that first has work
      std::unique_ptr<ListScan>& scan = scans[static_cast<size_t>(slot)];
      if (scan == nullptr) scan = std::make_unique<ListScan>(context, plan_.scan, slot, resources_);
      return *scan;
    };
    if (search_.places_.size() > 0) {
      return parallel_for(probes_.queries, meter, resources_, [&](int64_t query, int slot) {
        scan_of(slot).compare(query, search_.places_.data(), search_.kept_);
        scan_of(slot).finish(query);
      });
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
      const auto run_group = [&](int64_t group, int slot) {
        const int64_t first = groups[static_cast<size_t>(group)];
        scan_of(slot).run(tasks.data() + first, groups[static_cast<size_t>(group) + 1] - first);
      };
      const int64_t group_count = static_cast<int64_t>(groups.size()) - 1;
      if (is_short(tasks)) {
        for (int64_t group = 0; group < group_count; ++group) run_group(group, 0);
      } else {
        parallel_for(group_count, meter, resources_, run_group);
      }
    }
    if (probes_.queries == 1) return scan_of(0).finish(0);
    parallel_for(probes_.queries, meter, resources_, [&](int64_t query, int slot) { scan_of(slot).finish(query); });
  }

  // Whether waking threads would take longer than the scan.
  bool is_short(const std::vector<ListTask>& tasks) const {
    constexpr int64_t kShortCompared = 1 << 23;  // values of queries and vectors
    constexpr int64_t kShortDecoded = 1 << 20;
    int64_t values = 0;
    int64_t decoded = 0;
    for (const ListTask& task : tasks) {
      const int64_t rows = (task.end - task.first) * model_.cols();
      values += rows * task.queries.count;
      if (plan_.scan.engine_for(task.queries.count) != plan_.scan.few_engine) decoded += rows;
    }
    return values <= kShortCompared && decoded <= kShortDecoded;
  }

  // Of the lists that were ranked and not counted yet: a search of one query does not look at every list.
  void count_kept() const {
    std::vector<int32_t> lists;
    for (int64_t i = 0; i < probes_.queries * probes_.width; ++i) {
      int64_t& size = search_.sizes_[probes_.lists[i]];
      if (size != kNotCounted) continue;
      size = 0;
      lists.push_back(probes_.lists[i]);
    }
    const auto count = static_cast<int64_t>(lists.size());
    ProgressMeter meter("filter", count, quiet_);
    parallel_for(count, meter, quiet_, [&](int64_t i, int) {
      const int64_t list = lists[static_cast<size_t>(i)];
      int64_t size = 0;
      for (const Segment& segment : search_.vectors_.segments()) {
        for (int64_t at = segment->offsets()[list]; at < segment->offsets()[list + 1]; ++at) {
          size += keeps(task_.kept, segment->rows()[at]);
        }
      }
      search_.sizes_[list] = size;
    });
  }

  // How many lists the query visits; none, and false, where there are more to visit than were ranked.
  bool choose_probes(int64_t query) {
    const int64_t fewest = task_.most ? 0 : task_.fewest;
    int64_t held = 0;
    int64_t count = 0;
    int64_t first = 0;
    while (count < probes_.width && (count < task_.probes || held < fewest)) {
      const int64_t list = probes_.list(query, count++);
      held += search_.sizes_.size() == 0 ? size_of(list) : search_.sizes_[list];
      if (first == 0 && held >= search_.list_length()) first = count;
    }
    const bool enough = held >= fewest || probes_.width == model_.lists();
    if (!enough) count = 0;
    probes_.counts[query] = static_cast<int32_t>(count);
    probes_.firsts[query] = static_cast<int32_t>(first == 0 || task_.most ? count : first);
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
      for (size_t s = 0; s < search_.vectors_.segments().size(); ++s) {
        const ListSegment& segment = *search_.vectors_.segments()[s];
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
    for (const Segment& segment : search_.vectors_.segments()) size += segment->size_of(list);
    return size;
  }

  const CpuSearcher& search_;
  const IvfSearch& task_;
  const IvfModel& model_;
  const ListsCpuPlan plan_;
  const Resources resources_;
  const Resources quiet_;
  BatchMemory memory_;
  ProbeTable& probes_;
  std::span<const uint32_t> numbers_;
};

std::unique_ptr<ListsBackend> make_cpu_backend(const CpuSearcher& search, int64_t slots, const ListsCpuPlan& plan,
                                               const Resources& planned) {
  return std::make_unique<CpuBackend>(search, slots, plan, planned);
}

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

int64_t count_kept_rows(const uint64_t* kept, int64_t rows) {
  int64_t count = 0;
  for (int64_t word = 0; word < KeptRows::words_for(rows); ++word) count += std::popcount(kept[word]);
  return count;
}

void search_vectors(const ListedVectors& vectors, const MatrixView& queries, const IvfSearch& search,
                    const NeighborsView& out, const Resources& resources) {
  const IvfModel& model = vectors.model();
  check_input(model, vectors.segments(), queries, search.probes);
  if (search.k < 1) throw InvalidArgument(fmt::format("k = {}; at least one neighbour must be asked for", search.k));
  const ResultExit exit(model.metric);
  std::fill_n(out.ids, out.queries * out.k, exit.id(kPadding));
  std::fill_n(out.distances, out.queries * out.k, exit.distance(kPadding));
  const int64_t kept = search.kept == nullptr ? vectors.size() : count_kept_rows(search.kept, vectors.size());
  if (kept == 0 || queries.rows() == 0) return;
  IvfSearch task = search;
  task.probes = std::min(search.probes, model.lists());
  task.fewest = std::min(search.k, kept);
  if (search_kept(vectors, queries, task, kept, out, resources)) return;
  search_lists(CpuSearcher(vectors, task, kept, queries.rows(), resources), queries, out, resources);
}

RangeNeighbors range_search_vectors(const ListedVectors& vectors, const MatrixView& queries, const IvfSearch& search,
                                    const Resources& resources) {
  const IvfModel& model = vectors.model();
  check_input(model, vectors.segments(), queries, search.probes);
  if (vectors.size() == 0) return write_hits(model.metric, {}, nullptr, queries.rows(), resources);
  IvfSearch task = search;
  task.probes = std::min(search.probes, model.lists());
  const int64_t kept = search.kept == nullptr ? vectors.size() : count_kept_rows(search.kept, vectors.size());
  return range_search_lists(CpuSearcher(vectors, task, kept, queries.rows(), resources), queries, resources);
}

}  // namespace

void search_ivf(const IvfModel& model, const std::vector<Segment>& segments, const MatrixView& queries,
                const IvfSearch& search, const NeighborsView& out, const Resources& resources) {
  const DefaultFloatMode mode;
  search_vectors(ListedVectors(model, segments), queries, search, out, resources);
}

RangeNeighbors range_search_ivf(const IvfModel& model, const std::vector<Segment>& segments, const MatrixView& queries,
                                const IvfSearch& search, const Resources& resources) {
  const DefaultFloatMode mode;
  return range_search_vectors(ListedVectors(model, segments), queries, search, resources);
}

namespace {

class ListsOnCpu final : public SearchableLists {
 public:
  ListsOnCpu(const IvfModel& model, const std::vector<SharedSegment>& segments, const Resources& resources)
      : model_(model), shared_(segments) {
    for (const SharedSegment& segment : segments) segments_.push_back(segment->on(Device::cpu(), resources));
  }

  void search(const MatrixView& queries, const IvfSearch& search, const NeighborsView& out,
              const Resources& resources) const override {
    const DefaultFloatMode mode;
    const Resources here = resources.with_device(Device::cpu());
    search_vectors(ListedVectors(model_, segments_, screens_for(queries, search, here)), queries, search, out, here);
  }
  RangeNeighbors range_search(const MatrixView& queries, const IvfSearch& search,
                              const Resources& resources) const override {
    const DefaultFloatMode mode;
    const Resources here = resources.with_device(Device::cpu());
    return range_search_vectors(ListedVectors(model_, segments_, screens_for(queries, search, here)), queries, search,
                                here);
  }

 private:
  // All segments' screens, or none. Few queries of a list have them made; they are used where there is room for a
  // search with them, which takes more than one without.
  std::vector<SharedScreen> screens_for(const MatrixView& queries, const IvfSearch& search,
                                        const Resources& resources) const {
    if (!search.prepares || !ListScreen::suits(model_, cpu_extensions())) return {};
    const int64_t few = ListProductShape::choose(model_, queries.rows(), cpu_extensions(), true).few_queries;
    const bool makes = queries.rows() * std::min(search.probes, model_.lists()) <= few * model_.lists();
    const auto room = [&] {
      const int64_t rows = std::accumulate(segments_.begin(), segments_.end(), int64_t{0},
                                           [](int64_t sum, const Segment& one) { return sum + one->size(); });
      const Footprint least =
          search_footprint(model_, rows, search, search.kept != nullptr, queries.rows(), true, resources);
      return resources.host_memory()->available() - least.host;
    };
    constexpr int64_t kPlenty = int64_t{1} << 50;  // no limit: nobody needs to count
    const bool limited = resources.host_memory()->available() < kPlenty;
    if (limited && (search.most || room() < 0)) return {};  // what a range search finds may take all that is left
    std::vector<SharedScreen> screens;
    for (const SharedSegment& segment : shared_) {
      SharedScreen screen = find_list_screen(*segment);
      if (screen == nullptr && makes) screen = get_list_screen(*segment, model_, room() / 2, resources);
      if (screen == nullptr) return {};
      screens.push_back(std::move(screen));
    }
    return screens;
  }

  const IvfModel& model_;
  const std::vector<SharedSegment>& shared_;
  std::vector<Segment> segments_;
};

}  // namespace

std::shared_ptr<const SearchableLists> lists_on(Device device, const std::shared_ptr<const IvfModel>& model,
                                                const std::vector<SharedSegment>& segments,
                                                const Resources& resources) {
  if (device.kind == DeviceKind::cuda) return gpu_lists(device.index, model, segments, resources);
  return std::make_shared<ListsOnCpu>(*model, segments, resources);
}

Footprint search_ivf_footprint(const IvfModel& model, int64_t rows, const IvfSearch& search, bool filtered,
                               int64_t queries, const Resources& resources) {
  return search_footprint(model, rows, search, filtered, queries, false, resources);
}

}  // namespace kith
