// The search of lists on a GPU: one segment after the other (ivf_search_cuda.hpp, list_steps_cuda.hpp), and what was
// found in each brought together. Calls wait for their end, so that memory may be freed whenever nobody searches.
#include "core/byte_size.hpp"
#include "core/divide.hpp"
#include "core/footprint.hpp"
#include "core/host_array.hpp"
#include "core/typed_row.hpp"
#include "cuda/device_array.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/gpu_plan.hpp"
#include "cuda/workspace_layout.hpp"
#include "exact/few_queries_cuda.hpp"
#include "exact/prepared_base_cuda.hpp"
#include "exact/range_loop.hpp"
#include "exact/search_backend.hpp"
#include "ivf/scan/prepared_segment_cuda.hpp"
#include "ivf/search/all_lists_cuda.hpp"
#include "ivf/search/ivf_search_cuda.hpp"
#include "ivf/search/left_queries_cuda.hpp"
#include "ivf/search/list_loop.hpp"
#include "ivf/search/list_steps_cuda.hpp"
#include "ivf/search/long_lists_cuda.hpp"
#include "kernels/rerank/few_nearest_cuda.hpp"
#include "kernels/select/write_neighbors_cuda.hpp"
#include "rows/finite_check.hpp"
#include "rows/kept_rows.hpp"
#include "rows/rows_cuda.hpp"
#include "rows/stored_row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace kith {
namespace {

constexpr int64_t kMostProbes = int64_t{1} << 24;  // of the queries searched together
constexpr int64_t kHitBytes = 20;                  // of a hit: as it comes, and beside those of its query
constexpr int64_t kFirstHits = int64_t{1} << 22;   // that there is room for at first
constexpr int64_t kRangeQueryBytes = 64;           // of a query on the host, beside its hits

using GpuParts = std::vector<std::shared_ptr<const PreparedSegmentCuda>>;

// What a round is made for.
struct RoundShape {
  int64_t cols = 0;
  int64_t slots = 0;
  int64_t k = 0;            // 0: hits in a range are wanted
  int64_t found_lists = 1;  // of neighbours: the best so far, those of one part, and the best of both
  bool stages = false;      // queries come by way of host memory
  bool brings = false;      // queries do not lie on the device as they are
  bool may_be_short = false;
  bool writes_singly = false;  // results lie on the device, in the places of queries that do not follow each other
  int64_t ranked_lists = 0;    // of few queries, which one launch ranks (few_nearest_cuda.hpp); 0: as many queries are
  int multiprocessors = 0;
};

// The arrays of a batch on the device, in one block of memory: to take one from the device takes longer than most of
// what a search of few queries does on the host.
struct RoundLayout : WorkspaceLayout {
  RoundLayout(const RoundShape& shape, int64_t batch, int64_t scan_bytes = 0)
      : rows(take<float>(shape.brings ? batch : 0, shape.cols)),
        rank_keys(take<uint32_t>(batch, shape.ranked_lists)),
        rank_minima(take<uint32_t>(
            shape.ranked_lists > 0 ? few_nearest_minima(batch, shape.ranked_lists, shape.multiprocessors) : 0)),
        lists(take<int64_t>(shape.ranked_lists > 0 ? 0 : batch, shape.slots)),
        distances(take<float>(shape.ranked_lists > 0 ? 0 : batch, shape.slots)),
        probes(take<uint64_t>(batch, shape.slots)),
        short_queries(take<uint32_t>(shape.may_be_short ? batch + 1 : 0)),
        found(take<uint64_t>(batch, shape.k * shape.found_lists)),
        written_ids(take<int64_t>(shape.writes_singly ? batch : 0, shape.k)),
        written_distances(take<float>(shape.writes_singly ? batch : 0, shape.k)),
        scan(take<std::byte>(scan_bytes)) {}

  Slot<float> rows;        // queries
  Slot<uint32_t> rank_keys;
  Slot<uint32_t> rank_minima;
  Slot<int64_t> lists;
  Slot<float> distances;
  Slot<uint64_t> probes;
  Slot<uint32_t> short_queries;  // their number, and their places
  Slot<uint64_t> found;
  Slot<int64_t> written_ids;  // of neighbours on their way to the places of single queries
  Slot<float> written_distances;
  Slot<std::byte> scan;
};

// Spare memory for one of so many segments: half is for what they keep, half for lookup terms.
Resources sharing_spare(const Resources& resources, size_t segments) {
  return SpareDeviceMemory::divided(resources, static_cast<int64_t>(2 * segments));
}

// Where hits are put on the device.
struct HitMemory {
  HitMemory(int64_t queries, int64_t capacity, const std::shared_ptr<const DeviceContext>& context,
            const Resources& resources)
      : neighbors(capacity, "the vectors in range", context, resources),
        grouped(capacity, "the vectors in range", context, resources),
        queries_of(capacity, "the vectors in range", context, resources),
        total(1, "the vectors in range", context, resources),
        counts(queries, "the vectors in range", context, resources),
        starts(queries, "the vectors in range", context, resources) {}

  ListRangeHits hits() const {
    return {total.data(), counts.data(), neighbors.data(), queries_of.data(), neighbors.size()};
  }

  DeviceArray<uint64_t> neighbors;
  DeviceArray<uint64_t> grouped;
  DeviceArray<uint32_t> queries_of;  // of each neighbour
  DeviceArray<unsigned long long> total;
  DeviceArray<uint32_t> counts;
  DeviceArray<int64_t> starts;
};

// A search on the device: what its rounds share.
class CudaSearcher final : public ListSearcher {
 public:
  // `rows` of the index, for the filter. The resources are the caller's; resources() work on the search's stream.
  CudaSearcher(int device, const GpuModelCuda& model, Metric metric, const GpuParts& parts, int64_t rows,
               const IvfSearch& task, int64_t queries, const Resources& given)
      : guard_(device),
        context_(std::make_shared<const DeviceContext>(device, given.options().stream)),
        resources_(given.with_device(Device::cuda(device)).with_stream(context_->stream())),
        gpu_(usable_gpu_when_idle(Device::cuda(device))),
        model_(model),
        metric_(metric),
        parts_(parts),
        task_(task),
        lists_(parts.front()->lists().lists),
        terms_(parts.size()) {
    if (task.kept != nullptr) {
      kept_ = DeviceArray<uint64_t>(KeptRows::words_for(rows), "the filter on the device", context_, resources_);
      context_->copy_values(kept_.data(), task.kept, kept_.size());
    }
    if (task.fewest > 0) {
      sizes_ = DeviceArray<uint32_t>(lists_, "the lists' sizes", context_, resources_);
      context_->fill(sizes_.data(), 0, lists_);
      for (const auto& part : parts) {
        launch_add_list_sizes(part->lists(), kept_.data(), sizes_.data(), context_->stream());
      }
    }
    if (!task.most) take_terms(queries);
  }

  const IvfSearch& task() const override { return task_; }
  Metric metric() const override { return metric_; }
  int64_t lists() const override { return lists_; }
  const Resources& resources() const { return resources_; }

  Footprint least(const ListsRound& first) const override;
  PlanWithin<ListsPlan> plan(const ListsRound& round, const PlanBudget& budget) const override;
  std::unique_ptr<ListsBackend> begin(const ListsRound& round, const ListsPlan& plan,
                                      const Resources& planned) const override;

 private:
  friend class CudaBackend;

  // What lookups find beside the lists of each part; none where a plan will not look codes up.
  void take_terms(int64_t queries) {
    const Resources each = sharing_spare(resources_, parts_.size());
    for (size_t p = 0; p < parts_.size(); ++p) {
      IvfSearchShape shape = shape_of(p, queries, task_.probes);
      const auto looks_up = [&](ScanTerm term) {
        shape.term = term;
        return plan_ivf_search(shape, INT64_MAX).tables;
      };
      // Without a question to the device where lookups would not even pay with the best term.
      if (looks_up(ScanTerm::of_vector) && looks_up(parts_[p]->scan_term(each))) {
        terms_[p] = parts_[p]->scan_terms(each);
      }
    }
  }

  IvfSearchShape shape_of(size_t part, int64_t queries, int64_t slots) const {
    const PreparedSegmentCuda::Scanned scanned = parts_[part]->scanned(task_.k, task_.kept != nullptr);
    const DeviceListsView& lists = scanned.lists;
    IvfSearchShape shape;
    shape.format = lists.codec.format;
    shape.kind = lists.kind;
    shape.unit = lists.unit;
    shape.queries = queries;
    shape.slots = slots;
    shape.k = task_.k;
    shape.lists = lists.lists;
    shape.vectors = lists.count;
    shape.longest = scanned.longest;
    shape.row_terms = scanned.prepared.upper_terms != nullptr;
    shape.multiprocessors = gpu_.multiprocessors;
    shape.warpgroups = product_engine(gpu_.compute_capability) == ProductEngine::wgmma;
    shape.repeats = scanned.repeats != nullptr && task_.kept == nullptr;
    shape.term = terms_[part].term;
    return shape;
  }

  int64_t cols() const { return parts_.front()->lists().codec.format.cols; }
  // Whether one launch ranks the lists of a batch.
  bool ranks_few(const ListsRound& round, int64_t batch) const {
    return model_.centres() != nullptr && suits_few_nearest(key_kind(metric_), batch, cols(), round.slots);
  }
  RoundShape round_shape(const ListsRound& round, bool few) const {
    const bool on_host = round.query_space.host_readable();
    return {.cols = cols(),
            .slots = round.slots,
            .k = task_.k,
            .found_lists = parts_.size() > 1 ? 3 : 1,
            .stages = on_host && (round.again || round.dtype != DType::f32),
            .brings = on_host || round.again,
            .may_be_short = task_.fewest > 0,
            .writes_singly = round.again && !round.result_space.host_readable(),
            .ranked_lists = few ? lists_ : 0,
            .multiprocessors = gpu_.multiprocessors};
  }
  SearchTask ranking_task(const ListsRound& round, int64_t queries) const;
  ListsCudaPlan plan_batch(const ListsRound& round, int64_t batch, bool few, int64_t most, int64_t for_ranking,
                           const DeviceInfo& gpu, const PlanBudget& budget) const;

  const DeviceGuard guard_;
  const std::shared_ptr<const DeviceContext> context_;
  const Resources resources_;
  const DeviceInfo gpu_;
  const GpuModelCuda& model_;
  const Metric metric_;
  const GpuParts& parts_;
  const IvfSearch task_;
  const int64_t lists_;
  DeviceArray<uint64_t> kept_;    // bits of the filter
  DeviceArray<uint32_t> sizes_;   // of the lists, where queries may be short
  std::vector<ScanTerms> terms_;  // of each part
};

// The ranking of lists: an exact search of the centres.
SearchTask CudaSearcher::ranking_task(const ListsRound& round, int64_t queries) const {
  SearchShape shape;
  shape.queries = queries;
  shape.rows = lists_;
  shape.cols = cols();
  shape.metric = metric_;
  shape.query_space = shape.base_space = MemorySpace::cuda(context_->device());
  shape.base_checked = true;
  const bool check = task_.check_finite && !round.again;  // of queries that follow each other
  SearchTask task = search_of(shape, {.k = round.slots, .check_finite = check, .result_space = shape.base_space});
  task.prepared = true;
  return task;
}

// `few`: one launch ranks. `for_ranking`: else the device memory that ranking may plan with.
ListsCudaPlan CudaSearcher::plan_batch(const ListsRound& round, int64_t batch, bool few, int64_t most,
                                       int64_t for_ranking, const DeviceInfo& gpu, const PlanBudget& budget) const {
  const RoundShape shape = round_shape(round, few);
  const bool to_host = round.result_space.host_readable();
  const int64_t gathered = round.again ? array_bytes<uint32_t>(batch) : 0;  // numbers of queries
  ListsCudaPlan plan;
  plan.query_batch = batch;
  plan.ranks_few = few;
  plan.host_bytes =
      array_bytes<float>(shape.stages ? batch * shape.cols : 0) + array_bytes<uint64_t>(to_host ? batch * task_.k : 0);
  plan.device_bytes = saturating_add(RoundLayout(shape, batch).bytes, gathered);
  if (model_.centres() != nullptr && shape.ranked_lists == 0) {
    plan.ranking = plan_knn_cuda(ranking_task(round, batch), gpu, {kNoLimit, for_ranking, budget.threads, budget.cpu});
    plan.host_bytes += plan.ranking->host_bytes;
    plan.device_bytes = saturating_add(plan.device_bytes, plan.ranking->device_bytes);
  }
  if (task_.most) {
    plan.device_bytes += footprint_of<HitMemory>(resources_, batch, int64_t{0}, context_).device;
    plan.hits = std::max<int64_t>(1, (most - plan.device_bytes) / kHitBytes);
    plan.device_bytes += plan.hits * kHitBytes;
    return plan;
  }
  const int64_t left = std::max<int64_t>(0, most - plan.device_bytes);
  for (size_t p = 0; p < parts_.size(); ++p) {
    plan.parts.push_back(plan_ivf_search(shape_of(p, batch, round.slots), left));
    plan.scan_bytes = std::max(plan.scan_bytes, plan.parts.back().bytes);
  }
  plan.device_bytes = saturating_add(plan.device_bytes, plan.scan_bytes);
  return plan;
}

// Batches take up to a third of the memory, or a sixth where hits may be many, and ranking up to a sixth; the scan the
// rest.
PlanWithin<ListsPlan> CudaSearcher::plan(const ListsRound& round, const PlanBudget& given) const {
  return plan_on_gpu(Device::cuda(context_->device()), given, [&](const DeviceInfo& gpu, const PlanBudget& budget) {
    constexpr int64_t kSome = 256;                                      // so many that little is lost between arrays
    const int64_t most = std::min(budget.device, gpu.memory_free / 2);  // others may search beside it
    const int64_t wanted = std::clamp<int64_t>(kMostProbes / std::max<int64_t>(round.slots, task_.k), 1, round.queries);
    const int64_t each = divide_up(RoundLayout(round_shape(round, false), kSome).bytes, kSome);
    int64_t batch = std::clamp<int64_t>(most / (task_.most ? 6 : 3) / each, 1, wanted);
    const auto fits = [&](const ListsCudaPlan& plan) {
      return plan.device_bytes <= most && plan.host_bytes <= budget.host;
    };
    ListsCudaPlan plan = plan_batch(round, batch, ranks_few(round, batch), most, most / 6, gpu, budget);
    while (!fits(plan) && batch > 1) {
      batch = divide_up(batch, 2);
      plan = plan_batch(round, batch, false, most, most / 6, gpu, budget);
    }
    if (!fits(plan)) plan = plan_batch(round, 1, false, most, 0, gpu, budget);
    return ListsPlan(std::move(plan));
  });
}

// The largest of all rounds that may follow. A range search takes it twice: hits need room beside the plan, which gets
// half of the memory left.
Footprint CudaSearcher::least(const ListsRound& first) const {
  Footprint needed;
  for (ListsRound round = first;; round.again = true) {
    needed = needed.then(least_plan([&](const PlanBudget& budget) { return plan(round, budget); }, resources_));
    if (task_.fewest == 0 || (round.again && round.slots == lists_)) break;
    round.slots = std::min(4 * round.slots, lists_);
  }
  if (!task_.most) return needed;
  needed = needed.beside(RangeHits::footprint(0, first.queries, resources_.threads(), RangeHits::kFirstSegmentBytes))
               .beside(array_footprint<std::byte>(first.queries + 1, kRangeQueryBytes))
               .times(2);
  needed.at_least = true;
  return needed;
}

class CudaBackend final : public ListsBackend {
 public:
  CudaBackend(const CudaSearcher& search, const ListsRound& round, const ListsCudaPlan& plan, const Resources& planned)
      : search_(search),
        task_(search.task_),
        round_(round),
        plan_(plan),
        resources_(planned.with_progress({})),
        context_(search.context_),
        shape_(search.round_shape(round, plan.ranks_few)),
        staged_(shape_.stages ? plan.query_batch * shape_.cols : 0, "queries as f32", planned),
        layout_(shape_, plan.query_batch, plan.scan_bytes),
        memory_(layout_.bytes, "the search of lists", context_, planned) {
    if (shape_.ranked_lists > 0) few_.emplace(context_->device());
    if (!plan.ranking) return;
    ranking_ = make_knn_cuda(search.ranking_task(round, plan.query_batch), *plan.ranking, resources_);
  }

  void load(const MatrixView& queries, std::span<const uint32_t> numbers) override {
    numbers_ = numbers;
    const auto count = static_cast<int64_t>(numbers.size());
    const int64_t cols = shape_.cols;
    const bool here = queries.space().host_readable();
    if (few_) few_->begin(context_->stream());
    if (here) {
      bring(queries);
    } else if (follow_each_other()) {
      now_ = queries.slice(numbers.front(), count);
      return;
    } else {
      gather_floats_cuda(queries, {numbers.begin(), numbers.end()}, at(layout_.rows), resources_);
    }
    now_ = {at(layout_.rows), DType::f32, {count, cols, cols}, MemorySpace::cuda(context_->device())};
  }

  std::vector<uint32_t> rank() override {
    if (few_) {
      rank_few();
      return limit_probes();
    }
    if (ranking_ == nullptr) {  // one list
      context_->fill(at(layout_.probes), 0, count());
      return {};
    }
    const GpuCentres& centres = *search_.model_.centres();
    ProgressMeter meter("rank", count() * search_.lists_, resources_);
    const int64_t step = plan_.ranking->query_batch;
    for (int64_t first = 0; first < count(); first += step) {
      const int64_t some = std::min(step, count() - first);
      const int64_t to = first * round_.slots;
      ranking_->begin(now_.slice(first, some), numbers_.front() + first);
      ranking_->scan(centres.view(), 0, &centres.layout(), meter);
      ranking_->finish_on_device(
          {at(layout_.lists) + to, at(layout_.distances) + to, some, round_.slots, now_.space()});
    }
    launch_pack_probes(at(layout_.lists), count() * round_.slots, at(layout_.probes), context_->stream());
    return limit_probes();
  }

  void nearest(uint64_t* neighbors, ProgressMeter&) override {
    const int64_t found = count() * task_.k;
    const bool on_page = few_ && search_.parts_.size() == 1 && plan_.parts[0].direct &&
                         array_bytes<uint64_t>(found) <= PinnedPage::kDownBytes - kFewReportBytes;
    auto* const page = on_page ? reinterpret_cast<uint64_t*>(few_->page().down() + kFewReportBytes) : nullptr;
    if (on_page) {
      search_parts(page);
    } else {
      context_->copy_values(neighbors, search_parts(), found);
    }
    wait();
    check_queries();
    if (on_page) std::copy_n(page, found, neighbors);
  }

  void nearest_on_device(const NeighborsView& out, ProgressMeter&) override {
    const int64_t k = task_.k;
    const DeviceLists found{search_parts(), nullptr, count(), k};
    const auto to = [&](int64_t query, int64_t queries) -> NeighborsView {
      return {out.ids + query * k, out.distances + query * k, queries, k, out.space};
    };
    if (follow_each_other()) {
      launch_write_neighbors(search_.metric_, found, to(numbers_.front(), count()), context_->stream());
    } else {  // few, as a rule
      int64_t* const ids = at(layout_.written_ids);
      float* const distances = at(layout_.written_distances);
      launch_write_neighbors(search_.metric_, found, {ids, distances, count(), k, out.space}, context_->stream());
      for (int64_t i = 0; i < count(); ++i) {
        const NeighborsView one = to(numbers_[static_cast<size_t>(i)], 1);
        context_->copy_values(one.ids, ids + i * k, k);
        context_->copy_values(one.distances, distances + i * k, k);
      }
    }
    wait();
    check_queries();
  }

  // Where more are found than there is room for, they are looked for again: with more room, or for fewer queries.
  void within(RangeHits& hits, ProgressMeter&) override {
    if (checks_queries()) {
      wait();
      check_queries();
    }
    for (int64_t first = 0; first < count();) {
      const int64_t some = std::min(together_, count() - first);
      const HitMemory memory(some, capacity_, context_, resources_);
      const int64_t total = look_for_hits(memory, first, some);
      if (total <= capacity_) {
        hand_over(memory, first, some, total, hits);
        first += some;
      } else if (total <= plan_.hits) {
        capacity_ = total;
      } else if (some > 1) {
        together_ = divide_up(some, 2);
      } else {
        throw OutOfMemory(
            "more vectors are in range of one query than the device memory limit has room for; raise the limit, lower "
            "the radius, or search on the CPU",
            total * kHitBytes);
      }
    }
  }

 private:
  template <typename T>
  T* at(const Slot<T>& slot) const {
    return slot.in(memory_.data());
  }
  int64_t count() const { return static_cast<int64_t>(numbers_.size()); }
  bool follow_each_other() const { return int64_t{numbers_.back()} - numbers_.front() + 1 == count(); }

  void wait() {
    context_->synchronize();
    if (few_) few_->page().finished();
  }

  bool checks_queries() const { return few_ && task_.check_finite && !round_.again; }
  // After a wait.
  void check_queries() const {
    if (!checks_queries()) return;
    const uint32_t bad = reinterpret_cast<const FewReport*>(few_->page().down())->bad_query;
    if (bad != kNoBadRow) throw_not_finite("query", numbers_.front() + int64_t{bad});
  }

  // The nearest lists of few queries, in one launch; it zeroes what the scan after it counts in.
  void rank_few() const {
    FewNearestTask task;
    const auto& layout = dynamic_cast<const PreparedBaseCuda&>(search_.model_.centres()->layout());
    task.distance.queries = device_rows(now_);
    task.distance.rows = layout.rows();
    task.distance.cols = shape_.cols;
    task.distance.kind = key_kind(search_.metric_);
    task.distance.keys = at(layout_.rank_keys);
    task.distance.stride = search_.lists_;
    task.results.k = round_.slots;
    task.minima = at(layout_.rank_minima);
    task.words = few_->page().words();
    task.results.neighbors = at(layout_.probes);
    if (checks_queries()) task.report = reinterpret_cast<FewReport*>(few_->page().down());
    if (zeroes_early()) {
      task.zeroed = reinterpret_cast<uint64_t*>(at(layout_.scan));
      task.zeroed_words = zeroed_bytes(search_.shape_of(0, count(), round_.slots), plan_.parts[0]) / 8;
    }
    if (few_->with_launch().bytes > 0) task.copied = at(layout_.rows);
    launch_few_nearest(task, few_->with_launch(), search_.gpu_.multiprocessors, context_->stream());
  }
  bool zeroes_early() const { return few_ && !plan_.parts.empty() && plan_.parts[0].batch >= count(); }

  void bring(const MatrixView& queries) {
    const int64_t cols = shape_.cols;
    const int64_t bytes = array_bytes<float>(count() * cols);
    auto* const rows = few_ ? reinterpret_cast<float*>(few_->place_for(bytes)) : nullptr;
    if (rows != nullptr) {
      for (int64_t i = 0; i < count(); ++i) widen_row(queries, numbers_[static_cast<size_t>(i)], rows + i * cols);
      return few_->send(bytes, at(layout_.rows), *context_);
    }
    if (staged_.size() > 0) {
      for (int64_t i = 0; i < count(); ++i) {
        widen_row(queries, numbers_[static_cast<size_t>(i)], staged_.data() + i * cols);
      }
      return context_->copy_values(at(layout_.rows), staged_.data(), count() * cols);
    }
    context_->copy_rows({at(layout_.rows), count(), cols}, queries.slice(numbers_.front(), count()));
  }

  std::vector<uint32_t> limit_probes() {
    if (task_.fewest == 0) return {};
    ProbeLimitsTask task;
    task.probes = at(layout_.probes);
    task.queries = count();
    task.slots = round_.slots;
    task.asked = task_.probes;
    task.least = task_.fewest;
    task.sizes = search_.sizes_.data();
    task.lists = search_.lists_;
    task.short_count = at(layout_.short_queries);
    task.short_queries = at(layout_.short_queries) + 1;
    context_->fill(task.short_count, 0, 1);
    launch_probe_limits(task, context_->stream());
    uint32_t number = 0;
    context_->copy_values(&number, task.short_count, 1);
    context_->synchronize();
    check_queries();
    std::vector<uint32_t> places(number);
    if (number == 0) return places;
    context_->copy_values(places.data(), task.short_queries, int64_t{number});
    context_->synchronize();
    std::sort(places.begin(), places.end());
    return places;
  }

  void scan_part(IvfSearchTask& task, const IvfSearchShape& shape, const IvfSearchPlan& plan) const {
    task.leaves_direct = suits_left_queries(task, shape, plan, search_.metric_);
    launch_ivf_search(task, shape, plan, at(layout_.scan), context_->stream());
    if (!task.leaves_direct) return;
    search_left_queries(task, shape, plan, search_.metric_, at(layout_.scan), context_,
                        search_.resources_.with_progress({}));
  }

  // The best neighbours of the batch's queries; where there is one part they can be written elsewhere.
  uint64_t* search_parts(uint64_t* elsewhere = nullptr) {
    uint64_t* lists[3];
    for (int i = 0; i < 3; ++i) lists[i] = at(layout_.found) + i * count() * task_.k;
    if (elsewhere != nullptr) lists[0] = elsewhere;
    for (size_t p = 0; p < search_.parts_.size(); ++p) {
      const PreparedSegmentCuda::Scanned part = search_.parts_[p]->scanned(task_.k, task_.kept != nullptr);
      IvfSearchTask task;
      task.lists = part.lists;
      task.prepared = part.prepared;
      task.queries = static_cast<const float*>(now_.data());
      task.query_stride = now_.row_stride();
      task.probes = at(layout_.probes);
      task.kept = search_.kept_.data();
      task.repeats = part.repeats;
      task.terms = search_.terms_[p];
      task.neighbors = lists[p == 0 ? 0 : 1];
      task.zeroed = p == 0 && zeroes_early();
      const IvfSearchShape shape = search_.shape_of(p, count(), round_.slots);
      const ListsApart apart(task, shape, plan_.parts[p], search_.metric_, context_,
                             search_.resources_.with_progress({}));
      task.probes = apart.probes();
      task.elsewhere = apart.found();
      scan_part(task, shape, plan_.parts[p]);
      apart.bring_in();
      if (p == 0) continue;
      launch_merge_found(lists[0], lists[1], count(), task_.k, lists[2], context_->stream());
      std::swap(lists[0], lists[2]);
    }
    return lists[0];
  }

  // How many vectors are in range of queries first, first + 1, ... of the batch; those that there is room for are
  // there.
  int64_t look_for_hits(const HitMemory& memory, int64_t first, int64_t queries) const {
    ListRangeTask task;
    task.queries = static_cast<const float*>(now_.data()) + first * now_.row_stride();
    task.query_stride = now_.row_stride();
    task.query_count = queries;
    task.probes = at(layout_.probes) + first * round_.slots;
    task.slots = round_.slots;
    task.kept = search_.kept_.data();
    task.most = *task_.most;
    task.multiprocessors = search_.gpu_.multiprocessors;
    task.hits = memory.hits();
    context_->fill(memory.total.data(), 0, 1);
    context_->fill(memory.counts.data(), 0, queries);
    for (const auto& part : search_.parts_) {
      task.lists = part->lists();
      launch_list_range(task, context_->stream());
    }
    unsigned long long total = 0;
    context_->copy_values(&total, memory.total.data(), 1);
    context_->synchronize();
    return static_cast<int64_t>(total);
  }

  // On the host they count against what the caller has left: nobody knew how many they would be.
  void hand_over(const HitMemory& memory, int64_t first, int64_t queries, int64_t total, RangeHits& hits) const {
    const HostArray<uint32_t> counts(queries, "the vectors in range", search_.resources_);
    const HostArray<int64_t> places(queries, "the vectors in range", search_.resources_);
    context_->copy_values(counts.data(), memory.counts.data(), queries);
    context_->synchronize();
    int64_t place = 0;
    for (int64_t q = 0; q < queries; ++q) {
      places[q] = place;
      place += counts[q];
    }
    context_->copy_values(memory.starts.data(), places.data(), queries);
    launch_group_hits(memory.hits(), total, memory.starts.data(), memory.grouped.data(), context_->stream());
    const HostArray<uint64_t> neighbors(total, "the vectors in range", search_.resources_);
    context_->copy_values(neighbors.data(), memory.grouped.data(), total);
    context_->synchronize();
    for (int64_t q = 0; q < queries; ++q) {
      hits.add(0, numbers_[static_cast<size_t>(first + q)], neighbors.data() + places[q], counts[q]);
    }
  }

  const CudaSearcher& search_;
  const IvfSearch& task_;
  const ListsRound round_;
  const ListsCudaPlan plan_;
  const Resources resources_;
  const std::shared_ptr<const DeviceContext>& context_;
  const RoundShape shape_;
  const HostArray<float> staged_;
  const RoundLayout layout_;
  const DeviceBuffer memory_;
  std::unique_ptr<KnnBackend> ranking_;  // none: there is one list, or queries are few
  std::optional<FewQueries> few_;
  std::span<const uint32_t> numbers_;
  MatrixView now_;  // the queries on the device
  int64_t capacity_ = std::min(kFirstHits, plan_.hits);
  int64_t together_ = kMostProbes;
};

std::unique_ptr<ListsBackend> CudaSearcher::begin(const ListsRound& round, const ListsPlan& plan,
                                                  const Resources& planned) const {
  return std::make_unique<CudaBackend>(*this, round, std::get<ListsCudaPlan>(plan), planned);
}

class GpuListsCuda final : public SearchableLists {
 public:
  GpuListsCuda(int device, std::shared_ptr<const IvfModel> model, const std::vector<SharedSegment>& segments,
               const Resources& resources)
      : device_(device), host_model_(std::move(model)), model_(gpu_model(device, *host_model_, resources)) {
    const Resources each = sharing_spare(resources, segments.size());
    for (const SharedSegment& segment : segments) {
      rows_ += segment->size();
      if (segment->size() == 0) continue;
      parts_.push_back(prepared_segment(device, *segment, *host_model_, model_, each));
    }
  }

  void search(const MatrixView& queries, const IvfSearch& search, const NeighborsView& out,
              const Resources& resources) const override {
    if (queries.rows() == 0 || parts_.empty()) return;
    const ListsOnDevice there{device_, host_model_->metric, host_model_->lists(), rows_, parts_};
    if (search_all_lists(there, queries, search, out, resources)) return;
    const CudaSearcher searcher = for_search(search, queries, resources);
    search_lists(searcher, queries, out, searcher.resources());
  }

  RangeNeighbors range_search(const MatrixView& queries, const IvfSearch& search,
                              const Resources& resources) const override {
    if (queries.rows() == 0 || parts_.empty()) {
      return write_hits(host_model_->metric, {}, nullptr, queries.rows(), resources);
    }
    const CudaSearcher searcher = for_search(search, queries, resources);
    return range_search_lists(searcher, queries, searcher.resources());
  }

 private:
  CudaSearcher for_search(const IvfSearch& wanted, const MatrixView& queries, const Resources& resources) const {
    IvfSearch search = wanted;
    search.probes = std::min(search.probes, host_model_->lists());
    return CudaSearcher(device_, *model_, host_model_->metric, parts_, rows_, search, queries.rows(), resources);
  }

  const int device_;
  const std::shared_ptr<const IvfModel> host_model_;
  const std::shared_ptr<const GpuModelCuda> model_;
  GpuParts parts_;
  int64_t rows_ = 0;
};

}  // namespace

std::shared_ptr<const SearchableLists> gpu_lists(int device, const std::shared_ptr<const IvfModel>& model,
                                                 const std::vector<SharedSegment>& segments,
                                                 const Resources& resources) {
  return std::make_shared<GpuListsCuda>(device, model, segments, resources);
}

}  // namespace kith
