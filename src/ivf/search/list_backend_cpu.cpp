#include "ivf/search/list_backend_cpu.hpp"

#include "core/byte_size.hpp"
#include "core/cpu_target.hpp"
#include "core/divide.hpp"
#include "core/host_arrays.hpp"
#include "core/infinity.hpp"
#include "core/ordered_key.hpp"
#include "core/reused_memory.hpp"
#include "ivf/model/list_assignment.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "kernels/select/smallest_values.hpp"
#include "rows/kept_rows.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <new>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kMostQueries = 1 << 14;   // per batch
constexpr int64_t kMostTaskRows = 1 << 15;  // vectors per task

// The arrays of a batch.
struct BatchMemory {
  BatchMemory(ArrayPlaces& places, const IvfModel& model, const BatchNeeds& needs, int64_t queries)
      : capacity(queries),
        queries_as_floats(places.take<float>(queries * model.cols())),
        inverse_norms(places.take<double>(queries)),
        candidates(places.take<std::byte>(queries * CandidateList::bytes_for(needs.list_length))),
        lock_bytes(places.take<std::byte>(array_bytes<QueryLock>(queries))),
        threshold_bytes(places.take<std::byte>(array_bytes<std::atomic<float>>(queries))),
        probes(places, queries, needs.slots) {}

  CandidateList* lists() const { return reinterpret_cast<CandidateList*>(candidates.data()); }
  QueryLock* locks() const { return reinterpret_cast<QueryLock*>(lock_bytes.data()); }
  std::atomic<float>* thresholds() const { return reinterpret_cast<std::atomic<float>*>(threshold_bytes.data()); }

  // Called once memory is available.
  void construct(int64_t list_length) const {
    std::byte* const entries = candidates.data() + array_bytes<CandidateList>(capacity);
    const int64_t bytes = CandidateList::capacity_for(list_length) * CandidateList::kBytesPerCandidate;
    for (int64_t i = 0; i < capacity; ++i) new (lists() + i) CandidateList(entries + i * bytes, list_length);
    std::uninitialized_default_construct_n(locks(), capacity);
    std::uninitialized_default_construct_n(thresholds(), capacity);
  }

  int64_t capacity;
  PlacedArray<float> queries_as_floats;
  PlacedArray<double> inverse_norms;
  PlacedArray<std::byte> candidates;
  PlacedArray<std::byte> lock_bytes;
  PlacedArray<std::byte> threshold_bytes;
  ProbeTable probes;
};

// Scratch in which threads sort the candidates of a list.
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
  ReusedVector<CandidateScratch> all_;
};

Footprint batch_footprint(const IvfModel& model, const BatchNeeds& needs, int64_t queries, const Resources& resources) {
  // Ranking plans with the memory it finds; it needs some to be fast.
  constexpr int64_t kRankingRoom = int64_t{4} << 20;
  Footprint working = invert_footprint(queries, needs.slots, model.lists()).times(2);
  if (model.has_centres()) {
    working = working.then(rank_footprint(queries, needs.slots, resources)
                               .beside(array_footprint<float>(queries, 4 * model.cols()))
                               .beside({kRankingRoom}));
  }
  return counted(resources, [&](const Resources& counting) {
           const HostArrays<BatchMemory> memory("a batch of queries", counting, model, needs, queries);
         })
      .beside(array_footprint<uint64_t>(queries, needs.k))
      .beside(working);
}

}  // namespace

ListsCpuPlan plan_lists_cpu(const IvfModel& model, const BatchNeeds& needs, int64_t queries, bool screened,
                            const PlanBudget& budget, const Resources& resources) {
  ListsCpuPlan plan;
  const int64_t together = ListProductShape::batch_for_tables(model, queries, needs.slots, budget.cpu, screened);
  plan.scan = ListProductShape::choose(model, together, budget.cpu, screened);
  const Footprint threads = ListScan::footprint(model, plan.scan, resources)
                                .times(budget.threads)
                                .beside(footprint_of<ThreadScratch>(resources, needs.list_length));
  const auto bytes = [&](int64_t batch) {
    return threads.beside(batch_footprint(model, needs, batch, resources)).host;
  };
  plan.query_batch = std::min(together, kMostQueries);
  plan.host_bytes = bytes(plan.query_batch);
  while (plan.query_batch > 1 && plan.host_bytes > budget.host) {
    plan.query_batch = divide_up(plan.query_batch, 2);
    plan.host_bytes = bytes(plan.query_batch);
  }
  return plan;
}

ListsCpuPlan KeptListsPlan::get(const IvfModel& model, const BatchNeeds& needs, int64_t queries, bool screened,
                                const PlanBudget& budget, const Resources& resources) {
  const std::lock_guard hold(lock_);
  Shape shape{needs, queries, screened, budget.threads, cpu_target_name()};
  if (shape == shape_ && plan_.host_bytes <= budget.host) return plan_;
  const ListsCpuPlan plan = plan_lists_cpu(model, needs, queries, screened, budget, resources);
  if (plan.query_batch == std::min(queries, kMostQueries)) {  // enough memory
    shape_ = std::move(shape);
    plan_ = plan;
  }
  return plan;
}

namespace {

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

// Collects all vectors in range.
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

class CpuBackend final : public ListsBackend {
 public:
  CpuBackend(const CpuSearchData& search, int64_t slots, const ListsCpuPlan& plan, const Resources& resources)
      : search_(search),
        task_(search.task),
        model_(search.vectors.model()),
        plan_(plan),
        resources_(resources),
        memory_("a batch of queries", resources, model_, search.needs(slots), plan.query_batch),
        probes_(memory_->probes) {
    memory_->construct(search.list_length());
  }

  void load(const MatrixView& queries, std::span<const uint32_t> numbers) override {
    const int64_t cols = model_.cols();
    numbers_ = numbers;
    probes_.queries = static_cast<int64_t>(numbers.size());
    for (int64_t i = 0; i < probes_.queries; ++i) {
      float* const query = memory_->queries_as_floats.data() + i * cols;
      widen_row(queries, numbers[static_cast<size_t>(i)], query);
      memory_->inverse_norms[i] = canonical_inverse_norm(canonical_squared_norm_cpu(query, cols));
    }
  }

  std::vector<uint32_t> rank() override {
    if (search_.places.size() > 0) return {};
    if (task_.ranked != nullptr) {
      for (int64_t i = 0; i < probes_.queries; ++i) {
        const int64_t query = numbers_[static_cast<size_t>(i)];
        std::copy_n(task_.ranked + query * probes_.width, probes_.width, probes_.lists.data() + i * probes_.width);
      }
    } else if (model_.has_centres()) {
      rank_lists(model_.metric, model_.centres.view(),
                 MatrixView(memory_->queries_as_floats.data(), probes_.queries, model_.cols()), probes_.width,
                 probes_.lists.data(), resources_);
    } else {
      std::fill_n(probes_.lists.data(), probes_.queries, 0);
    }
    if (search_.sizes.size() > 0) count_kept();
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
    auto* const thresholds = memory_->thresholds();
    for (int64_t q = 0; q < probes_.queries; ++q) {
      memory_->lists()[q].reset(user.threshold(q));
      thresholds[q] = user.threshold(q);
    }
    const ListScanContext context{search_.vectors,
                                  search_.tables,
                                  memory_->queries_as_floats.data(),
                                  memory_->inverse_norms.data(),
                                  k,
                                  memory_->lists(),
                                  memory_->locks(),
                                  thresholds,
                                  user,
                                  task_.kept,
                                  meter};
    ReusedVector<std::unique_ptr<ListScan>> scans(static_cast<size_t>(resources_.threads()));
    const auto scan_of = [&](int slot) -> ListScan& {  // created by a slot's first task
      std::unique_ptr<ListScan>& scan = scans[static_cast<size_t>(slot)];
      if (scan == nullptr) scan = std::make_unique<ListScan>(context, plan_.scan, slot, resources_);
      return *scan;
    };
    if (search_.places.size() > 0) {
      return parallel_for(probes_.queries, meter, resources_, [&](int64_t query, int slot) {
        scan_of(slot).compare(query, search_.places.data(), search_.kept);
        scan_of(slot).finish(query);
      });
    }
    for (const ProbePart part : {ProbePart::first, ProbePart::rest}) {
      const ListVisits visits = invert_probes(probes_, part, model_.lists(), resources_);
      cut(visits);
      const auto count = static_cast<int64_t>(tasks_.size());
      const int64_t most = std::max<int64_t>(1, count / (2 * resources_.threads()));  // all threads have some
      const auto group_at = [&](int64_t first) {
        return ListScan::together(plan_.scan, tasks_.data() + first, std::min(most, count - first));
      };
      if (is_short()) {
        for (int64_t first = 0, here = 0; first < count; first += here) {
          here = group_at(first);
          if (first + here < count) {
            const ListTask& next = tasks_[static_cast<size_t>(first + here)];
            search_.vectors.prefetch(next.segment, next.first, next.end);
          }
          scan_of(0).run(tasks_.data() + first, here);
        }
        continue;
      }
      groups_.assign(1, 0);
      while (groups_.back() < count) groups_.push_back(groups_.back() + group_at(groups_.back()));
      parallel_for(static_cast<int64_t>(groups_.size()) - 1, meter, resources_, [&](int64_t group, int slot) {
        const int64_t first = groups_[static_cast<size_t>(group)];
        scan_of(slot).run(tasks_.data() + first, groups_[static_cast<size_t>(group) + 1] - first);
      });
    }
    if (probes_.queries == 1) return scan_of(0).finish(0);
    parallel_for(probes_.queries, meter, resources_, [&](int64_t query, int slot) { scan_of(slot).finish(query); });
  }

  // Whether waking threads would take longer than the scan.
  bool is_short() const {
    constexpr int64_t kShortCompared = 1 << 23;  // values of queries and vectors
    constexpr int64_t kShortDecoded = 1 << 20;
    int64_t values = 0;
    int64_t decoded = 0;
    for (const ListTask& task : tasks_) {
      const int64_t rows = (task.end - task.first) * model_.cols();
      values += rows * task.queries.count;
      if (plan_.scan.engine_for(task.queries.count) != plan_.scan.few_engine) decoded += rows;
    }
    return values <= kShortCompared && decoded <= kShortDecoded;
  }

  // Counts the lists that were ranked and not counted yet: a search of one query does not look at every list.
  void count_kept() const {
    ReusedVector<int32_t> lists;
    for (int64_t i = 0; i < probes_.queries * probes_.width; ++i) {
      int64_t& size = search_.sizes[probes_.lists[i]];
      if (size != kNotCounted) continue;
      size = 0;
      lists.push_back(probes_.lists[i]);
    }
    const auto count = static_cast<int64_t>(lists.size());
    const Resources quiet = resources_.with_progress({});
    ProgressMeter meter("filter", count, quiet);
    parallel_for(count, meter, quiet, [&](int64_t i, int) {
      const int64_t list = lists[static_cast<size_t>(i)];
      int64_t size = 0;
      for (const Segment& segment : search_.vectors.segments()) {
        segment->check_list(list);
        for (int64_t at = segment->offsets()[list]; at < segment->offsets()[list + 1]; ++at) {
          size += keeps(task_.kept, segment->rows()[at]);
        }
      }
      search_.sizes[list] = size;
    });
  }

  // How many lists the query visits; none, and false, where there are more to visit than were ranked.
  bool choose_probes(int64_t query) {
    const int64_t fewest = task_.most || !task_.extends ? 0 : task_.fewest;
    int64_t held = 0;
    int64_t count = 0;
    int64_t first = 0;
    while (count < probes_.width && (count < task_.probes || held < fewest)) {
      const int64_t list = probes_.list(query, count++);
      held += search_.sizes.size() == 0 ? size_of(list) : search_.sizes[list];
      if (first == 0 && held >= search_.list_length()) first = count;
    }
    const bool enough = held >= fewest || probes_.width == model_.lists();
    if (!enough) count = 0;
    probes_.counts[query] = static_cast<int32_t>(count);
    probes_.firsts[query] = static_cast<int32_t>(first == 0 || task_.most ? count : first);
    return enough;
  }

  // Each task is a block of queries and a range of a list's vectors in a segment.
  void cut(const ListVisits& visits) {
    for (const Segment& segment : search_.vectors.segments()) {
      if (segment->is_mapped()) fetch(*segment, visits);
    }
    tasks_.clear();
    tasks_.reserve(visits.lists.size() * search_.vectors.segments().size());
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
            tasks_.push_back({s,
                             first,
                             std::min(first + most, end),
                             {visits.queries.data() + visit.first + q,
                              std::min(plan_.scan.query_block, visit.count - q), visit.list}});
          }
        }
      }
    }
  }

  // Lists of a mapped file: few are all asked for at once, so that the disk brings them side by side; many come in
  // their order, as the file has them.
  static void fetch(const ListSegment& segment, const ListVisits& visits) {
    constexpr int64_t kMostExpected = int64_t{64} << 20;  // bytes
    int64_t vectors = 0;
    for (const ListVisit& visit : visits.lists) vectors += segment.size_of(visit.list);
    const bool few = vectors * (segment.code_bytes() + 4) <= kMostExpected;
    for (const ListVisit& visit : visits.lists) {
      if (few) segment.expect_list(visit.list);
    }
    for (const ListVisit& visit : visits.lists) segment.check_list(visit.list);
  }

  int64_t size_of(int64_t list) const {
    int64_t size = 0;
    for (const Segment& segment : search_.vectors.segments()) size += segment->size_of(list);
    return size;
  }

  const CpuSearchData& search_;
  const IvfSearch& task_;
  const IvfModel& model_;
  const ListsCpuPlan plan_;
  const Resources resources_;
  const HostArrays<BatchMemory> memory_;
  ProbeTable probes_;
  std::span<const uint32_t> numbers_;
  ReusedVector<ListTask> tasks_;
  ReusedVector<int64_t> groups_;  // groups of tasks that run together
};

}  // namespace

std::unique_ptr<ListsBackend> make_cpu_backend(const CpuSearchData& search, int64_t slots, const ListsCpuPlan& plan,
                                               const Resources& planned) {
  return std::make_unique<CpuBackend>(search, slots, plan, planned);
}

}  // namespace kith
