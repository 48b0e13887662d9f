// The search of lists on a GPU: one segment after the other (ivf_search_cuda.hpp, list_range_cuda.hpp), and what was
// found in each brought together. Calls wait for their end, so that memory may be freed whenever nobody searches.
#include "cluster/device_row_gather_cuda.hpp"
#include "core/byte_size.hpp"
#include "core/divide.hpp"
#include "core/host_array.hpp"
#include "core/typed_row.hpp"
#include "cuda/device_array.hpp"
#include "cuda/device_guard.hpp"
#include "cuda/gpu_plan.hpp"
#include "exact/knn_plan_cuda.hpp"
#include "ivf/scan/prepared_segment_cuda.hpp"
#include "ivf/search/gpu_lists.hpp"
#include "ivf/search/ivf_search_cuda.hpp"
#include "ivf/search/list_loop.hpp"
#include "ivf/search/list_range_cuda.hpp"
#include "ivf/search/merge_found_cuda.hpp"
#include "ivf/search/probe_limits_cuda.hpp"
#include "kernels/select/write_neighbors_cuda.hpp"
#include "rows/kept_rows.hpp"
#include "rows/stored_row.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kMostProbes = int64_t{1} << 24;  // of the queries searched together
constexpr int64_t kHitBytes = 20;                  // of a hit: as it comes, and beside those of its query
constexpr int64_t kFirstHits = int64_t{1} << 22;   // that there is room for at first

using GpuParts = std::vector<std::shared_ptr<const PreparedSegmentCuda>>;

// A search on the device: what its rounds share.
class CudaSearcher final : public ListSearcher {
 public:
  // `rows` of the index, for the filter. The resources are the caller's; resources() work on the search's stream.
  CudaSearcher(int device, const GpuModelCuda& model, Metric metric, const GpuParts& parts, int64_t rows,
               const ListsTask& task, int64_t queries, const Resources& given)
      : guard_(device),
        context_(std::make_shared<const DeviceContext>(device, given.options().stream)),
        resources_(given.with_device(Device::cuda(device)).with_stream(context_->stream())),
        multiprocessors_(usable_gpu_when_idle(Device::cuda(device)).multiprocessors),
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

  const ListsTask& task() const override { return task_; }
  Metric metric() const override { return metric_; }
  int64_t lists() const override { return lists_; }
  const Resources& resources() const { return resources_; }

  ListsPlan plan(const ListsRound& round, const PlanBudget& budget) const override;
  std::unique_ptr<ListsBackend> begin(const ListsRound& round, const ListsPlan& plan,
                                      const Resources& planned) const override;

 private:
  friend class CudaBackend;

  // What lookups find beside the lists of each part; none where a plan will not look codes up.
  void take_terms(int64_t queries) {
    for (size_t p = 0; p < parts_.size(); ++p) {
      IvfSearchShape shape = shape_of(p, queries, task_.probes);
      const auto looks_up = [&](ScanTerm term) {
        shape.term = term;
        return plan_ivf_search(shape, INT64_MAX).tables;
      };
      // Without a question to the device where lookups would not even pay with the best term.
      if (looks_up(ScanTerm::of_vector) && looks_up(parts_[p]->scan_term(resources_))) {
        terms_[p] = parts_[p]->scan_terms(resources_);
      }
    }
  }

  IvfSearchShape shape_of(size_t part, int64_t queries, int64_t slots) const {
    const DeviceListsView& lists = parts_[part]->lists();
    IvfSearchShape shape;
    shape.format = lists.codec.format;
    shape.kind = lists.kind;
    shape.queries = queries;
    shape.slots = slots;
    shape.k = task_.k;
    shape.lists = lists.lists;
    shape.vectors = lists.count;
    shape.multiprocessors = multiprocessors_;
    shape.term = terms_[part].term;
    return shape;
  }

  int64_t cols() const { return parts_.front()->lists().codec.format.cols; }
  // The best so far, those of one part, and the best of both.
  int64_t found_lists() const { return parts_.size() > 1 ? 3 : 1; }
  // Whether queries come by way of host memory.
  bool stages(const ListsRound& round) const {
    return round.query_space.host_readable() && (round.again || round.dtype != DType::f32);
  }
  ListsBatches round_bytes(const ListsRound& round, int64_t batch) const;
  ListsBatches ranking_bytes(const ListsRound& round, int64_t batch, const DeviceInfo& gpu, PlanBudget budget) const;
  ListsCudaPlan plan_batch(const ListsRound& round, int64_t batch, int64_t most, int64_t for_ranking,
                           const DeviceInfo& gpu, const PlanBudget& budget) const;

  const DeviceGuard guard_;
  const std::shared_ptr<const DeviceContext> context_;
  const Resources resources_;
  const int multiprocessors_;
  const GpuModelCuda& model_;
  const Metric metric_;
  const GpuParts& parts_;
  const ListsTask task_;
  const int64_t lists_;
  DeviceArray<uint64_t> kept_;    // bits of the filter
  DeviceArray<uint32_t> sizes_;   // of the lists, where queries may be short
  std::vector<ScanTerms> terms_;  // of each part
};

// What CudaBackend's own arrays take.
ListsBatches CudaSearcher::round_bytes(const ListsRound& round, int64_t batch) const {
  const bool brings = round.query_space.host_readable() || round.again;
  const int64_t query = (brings ? array_bytes<float>(cols()) : 0) + (round.again ? array_bytes<uint32_t>(1) : 0);
  const int64_t probe = sizeof(int64_t) + sizeof(float) + sizeof(uint64_t);
  const int64_t found = task_.most ? 0 : array_bytes<uint64_t>(task_.k * found_lists());
  const int64_t written =  // to the places of single queries
      round.again && !round.result_space.host_readable()
          ? task_.k * static_cast<int64_t>(sizeof(int64_t) + sizeof(float))
          : 0;
  const int64_t counted = sizeof(uint64_t) + sizeof(uint32_t);  // of short queries, or hits of each
  const int64_t packed = round.result_space.host_readable() ? array_bytes<uint64_t>(task_.k) : 0;
  ListsBatches bytes;
  bytes.device_bytes = batch * (query + round.slots * probe + found + written + counted) + 64;
  bytes.host_bytes = batch * (packed + (stages(round) ? array_bytes<float>(cols()) : 0));
  return bytes;
}

// What the ranking of lists, an exact search of the centres, takes of a budget for the device.
ListsBatches CudaSearcher::ranking_bytes(const ListsRound& round, int64_t batch, const DeviceInfo& gpu,
                                         PlanBudget budget) const {
  if (model_.centres() == nullptr) return {};
  SearchShape shape;
  shape.queries = batch;
  shape.rows = lists_;
  shape.cols = cols();
  shape.metric = metric_;
  shape.query_space = shape.base_space = MemorySpace::cuda(context_->device());
  shape.base_checked = true;
  SearchTask ranking =
      search_of(shape, {.k = round.slots, .check_finite = task_.check_finite, .result_space = shape.base_space});
  ranking.scope.prepared = true;
  ListsBatches bytes;
  budget.host = kNoLimit;
  try {
    // A plan takes half of what it finds, where that will do.
    const KnnCudaPlan plan = plan_knn_cuda(ranking, gpu, budget);
    bytes.host_bytes = 2 * plan.host_bytes;
    bytes.device_bytes = 2 * plan.device_bytes;
  } catch (const OutOfMemory& least) {
    budget.device = least.bytes_needed();
    const KnnCudaPlan plan = plan_knn_cuda(ranking, gpu, budget);
    bytes.host_bytes = plan.host_bytes;
    bytes.device_bytes = plan.device_bytes;
  }
  return bytes;
}

// `for_ranking`: the device memory that ranking may plan with.
ListsCudaPlan CudaSearcher::plan_batch(const ListsRound& round, int64_t batch, int64_t most, int64_t for_ranking,
                                       const DeviceInfo& gpu, const PlanBudget& budget) const {
  PlanBudget ranking = budget;
  ranking.device = for_ranking;
  const ListsBatches own = round_bytes(round, batch);
  const ListsBatches ranked = ranking_bytes(round, batch, gpu, ranking);
  ListsCudaPlan plan;
  plan.query_batch = batch;
  plan.host_bytes = own.host_bytes + ranked.host_bytes;
  plan.device_bytes = own.device_bytes + ranked.device_bytes;
  const int64_t left = std::max<int64_t>(0, most - plan.device_bytes);
  if (task_.most) {
    plan.hits = std::max<int64_t>(1, left / kHitBytes);
    plan.device_bytes += plan.hits * kHitBytes;
    return plan;
  }
  for (size_t p = 0; p < parts_.size(); ++p) {
    plan.parts.push_back(plan_ivf_search(shape_of(p, batch, round.slots), left));
    plan.scan_bytes = std::max(plan.scan_bytes, plan.parts.back().bytes);
  }
  plan.device_bytes += plan.scan_bytes;
  return plan;
}

// Batches take up to a third of the memory, or a sixth where hits may be many, and ranking up to a third; the scan the
// rest.
ListsPlan CudaSearcher::plan(const ListsRound& round, const PlanBudget& given) const {
  return plan_on_gpu(Device::cuda(context_->device()), given, [&](const DeviceInfo& gpu, const PlanBudget& budget) {
    const int64_t most = std::min(budget.device, gpu.memory_free / 2);  // others may search beside it
    const int64_t wanted = std::clamp<int64_t>(kMostProbes / std::max<int64_t>(round.slots, task_.k), 1, round.queries);
    const int64_t each = std::max<int64_t>(1, round_bytes(round, 1).device_bytes);
    int64_t batch = std::clamp<int64_t>(most / (task_.most ? 6 : 3) / each, 1, wanted);
    const auto fits = [&](const ListsCudaPlan& plan) {
      return plan.device_bytes <= most && plan.host_bytes <= budget.host;
    };
    ListsCudaPlan plan = plan_batch(round, batch, most, most / 6, gpu, budget);
    while (!fits(plan) && batch > 1) {
      batch = divide_up(batch, 2);
      plan = plan_batch(round, batch, most, most / 6, gpu, budget);
    }
    if (!fits(plan)) plan = plan_batch(round, 1, most, 0, gpu, budget);
    const int64_t lacking = plan.device_bytes > budget.device ? plan.device_bytes
                            : plan.host_bytes > budget.host   ? plan.host_bytes
                                                              : 0;
    if (lacking > 0) {
      throw OutOfMemory(fmt::format("a search of the lists takes at least {}", format_bytes_up(lacking)), lacking);
    }
    return ListsPlan(std::move(plan));
  });
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
        starts(queries, "the vectors in range", context, resources),
        hits{total.data(), counts.data(), neighbors.data(), queries_of.data(), capacity} {
    context->fill(total.data(), 0, 1);
    context->fill(counts.data(), 0, queries);
  }

  DeviceArray<uint64_t> neighbors;
  DeviceArray<uint64_t> grouped;
  DeviceArray<uint32_t> queries_of;  // of each neighbour
  DeviceArray<unsigned long long> total;
  DeviceArray<uint32_t> counts;
  DeviceArray<int64_t> starts;
  ListRangeHits hits;
};

class CudaBackend final : public ListsBackend {
 public:
  CudaBackend(const CudaSearcher& search, const ListsRound& round, const ListsCudaPlan& plan, const Resources& planned)
      : search_(search),
        task_(search.task_),
        round_(round),
        plan_(plan),
        resources_(planned.with_progress({})),
        context_(search.context_),
        staged_(search.stages(round) ? plan.query_batch * search.cols() : 0, "queries as f32", planned),
        rows_(round.query_space.host_readable() || round.again ? plan.query_batch * search.cols() : 0,
              "queries on the device", context_, planned),
        lists_(plan.query_batch * round.slots, "the queries' lists", context_, planned),
        distances_(plan.query_batch * round.slots, "the queries' lists", context_, planned),
        probes_(plan.query_batch * round.slots, "the queries' lists", context_, planned),
        short_(task_.fewest > 0 ? plan.query_batch + 1 : 0, "queries searched again", context_, planned),
        found_(task_.most ? 0 : plan.query_batch * task_.k * search.found_lists(), "the neighbours found", context_,
               planned),
        scan_(plan.scan_bytes, "the search of lists", context_, planned) {}

  void load(const MatrixView& queries, std::span<const uint32_t> numbers) override {
    numbers_ = numbers;
    const auto count = static_cast<int64_t>(numbers.size());
    const int64_t cols = search_.cols();
    if (queries.space().host_readable()) {
      bring(queries);
    } else if (follow_each_other()) {
      now_ = queries.slice(numbers.front(), count);
      return;
    } else {
      gather_floats_cuda(queries, {numbers.begin(), numbers.end()}, rows_.data(), resources_);
    }
    now_ = {rows_.data(), DType::f32, {count, cols, cols}, MemorySpace::cuda(context_->device())};
  }

  std::vector<uint32_t> rank() override {
    if (search_.model_.centres() == nullptr) {  // one list
      context_->fill(probes_.data(), 0, count());
      return {};
    }
    search_.model_.centres()->nearest(now_, round_.slots, task_.check_finite && !round_.again, lists_.data(),
                                      distances_.data(), resources_);
    launch_pack_probes(lists_.data(), count() * round_.slots, probes_.data(), context_->stream());
    return limit_probes();
  }

  void nearest(uint64_t* neighbors, ProgressMeter&) override {
    context_->copy_values(neighbors, search_parts(), count() * task_.k);
    context_->synchronize();
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
      const DeviceArray<int64_t> ids(count() * k, "the neighbours found", context_, resources_);
      const DeviceArray<float> distances(count() * k, "the neighbours found", context_, resources_);
      launch_write_neighbors(search_.metric_, found, {ids.data(), distances.data(), count(), k, out.space},
                             context_->stream());
      for (int64_t i = 0; i < count(); ++i) {
        const NeighborsView one = to(numbers_[static_cast<size_t>(i)], 1);
        context_->copy_values(one.ids, ids.data() + i * k, k);
        context_->copy_values(one.distances, distances.data() + i * k, k);
      }
    }
    context_->synchronize();
  }

  // Where more are found than there is room for, they are looked for again: with more room, or for fewer queries.
  void within(RangeHits& hits, ProgressMeter&) override {
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
  int64_t count() const { return static_cast<int64_t>(numbers_.size()); }
  bool follow_each_other() const { return int64_t{numbers_.back()} - numbers_.front() + 1 == count(); }

  void bring(const MatrixView& queries) {
    const int64_t cols = search_.cols();
    if (staged_.size() > 0) {
      for (int64_t i = 0; i < count(); ++i) {
        widen_row(queries, numbers_[static_cast<size_t>(i)], staged_.data() + i * cols);
      }
      return context_->copy_values(rows_.data(), staged_.data(), count() * cols);
    }
    const MatrixView some = queries.slice(numbers_.front(), count());
    const auto width = static_cast<size_t>(cols) * sizeof(float);
    KITH_CUDA_CHECK(cudaMemcpy2DAsync(rows_.data(), width, some.data(),
                                      static_cast<size_t>(some.row_stride()) * sizeof(float), width,
                                      static_cast<size_t>(count()), cudaMemcpyHostToDevice, context_->stream()));
  }

  std::vector<uint32_t> limit_probes() {
    if (task_.fewest == 0) return {};
    ProbeLimitsTask task;
    task.probes = probes_.data();
    task.queries = count();
    task.slots = round_.slots;
    task.asked = task_.probes;
    task.least = task_.fewest;
    task.sizes = search_.sizes_.data();
    task.lists = search_.lists_;
    task.short_count = short_.data();
    task.short_queries = short_.data() + 1;
    context_->fill(task.short_count, 0, 1);
    launch_probe_limits(task, context_->stream());
    uint32_t number = 0;
    context_->copy_values(&number, task.short_count, 1);
    context_->synchronize();
    std::vector<uint32_t> places(number);
    if (number == 0) return places;
    context_->copy_values(places.data(), task.short_queries, int64_t{number});
    context_->synchronize();
    std::sort(places.begin(), places.end());
    return places;
  }

  // The best neighbours of the batch's queries.
  uint64_t* search_parts() {
    uint64_t* lists[3];
    for (int i = 0; i < 3; ++i) lists[i] = found_.data() + i * count() * task_.k;
    for (size_t p = 0; p < search_.parts_.size(); ++p) {
      const PreparedSegmentCuda& part = *search_.parts_[p];
      IvfSearchTask task;
      task.lists = part.lists();
      task.prepared = part.prepared();
      task.queries = static_cast<const float*>(now_.data());
      task.query_stride = now_.row_stride();
      task.probes = probes_.data();
      task.kept = search_.kept_.data();
      task.repeats = part.repeats();
      task.terms = search_.terms_[p];
      task.neighbors = lists[p == 0 ? 0 : 1];
      launch_ivf_search(task, search_.shape_of(p, count(), round_.slots), plan_.parts[p], scan_.data(),
                        context_->stream());
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
    task.probes = probes_.data() + first * round_.slots;
    task.slots = round_.slots;
    task.kept = search_.kept_.data();
    task.most = *task_.most;
    task.multiprocessors = search_.multiprocessors_;
    task.hits = memory.hits;
    for (const auto& part : search_.parts_) {
      task.lists = part->lists();
      launch_list_range(task, context_->stream());
    }
    unsigned long long total = 0;
    context_->copy_values(&total, memory.hits.total, 1);
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
    launch_group_hits(memory.hits, total, memory.starts.data(), memory.grouped.data(), context_->stream());
    const HostArray<uint64_t> neighbors(total, "the vectors in range", search_.resources_);
    context_->copy_values(neighbors.data(), memory.grouped.data(), total);
    context_->synchronize();
    for (int64_t q = 0; q < queries; ++q) {
      hits.add(0, numbers_[static_cast<size_t>(first + q)], neighbors.data() + places[q], counts[q]);
    }
  }

  const CudaSearcher& search_;
  const ListsTask& task_;
  const ListsRound round_;
  const ListsCudaPlan plan_;
  const Resources resources_;
  const std::shared_ptr<const DeviceContext>& context_;
  const HostArray<float> staged_;
  const DeviceArray<float> rows_;
  const DeviceArray<int64_t> lists_;
  const DeviceArray<float> distances_;
  const DeviceArray<uint64_t> probes_;
  const DeviceArray<uint32_t> short_;
  const DeviceArray<uint64_t> found_;
  const DeviceBuffer scan_;
  std::span<const uint32_t> numbers_;
  MatrixView now_;  // the queries on the device
  int64_t capacity_ = std::min(kFirstHits, plan_.hits);
  int64_t together_ = kMostProbes;
};

std::unique_ptr<ListsBackend> CudaSearcher::begin(const ListsRound& round, const ListsPlan& plan,
                                                  const Resources& planned) const {
  return std::make_unique<CudaBackend>(*this, round, std::get<ListsCudaPlan>(plan), planned);
}

class GpuListsCuda final : public GpuLists {
 public:
  GpuListsCuda(int device, std::shared_ptr<const IvfModel> model, const std::vector<SharedSegment>& segments,
               const Resources& resources)
      : device_(device), host_model_(std::move(model)), model_(gpu_model(device, *host_model_, resources)) {
    for (const SharedSegment& segment : segments) {
      rows_ += segment->size();
      if (segment->size() == 0) continue;
      parts_.push_back(prepared_segment(device, *segment, *host_model_, model_, resources));
    }
  }

  void search(const MatrixView& queries, const IvfSearch& search, int64_t least, bool check_finite,
              const NeighborsView& out, const Resources& resources) const override {
    if (queries.rows() == 0 || parts_.empty()) return;
    const CudaSearcher searcher = for_task({.k = search.k,
                                            .probes = std::min(search.probes, host_model_->lists()),
                                            .kept = search.kept,
                                            .fewest = least,
                                            .check_finite = check_finite},
                                           queries, resources);
    search_lists(searcher, queries, out, searcher.resources());
  }

  void range_search(const MatrixView& queries, const IvfRange& range, bool check_finite, RangeHits& hits,
                    const Resources& resources) const override {
    if (queries.rows() == 0 || parts_.empty()) return;
    const CudaSearcher searcher = for_task({.most = range.most,
                                            .probes = std::min(range.probes, host_model_->lists()),
                                            .kept = range.kept,
                                            .check_finite = check_finite},
                                           queries, resources);
    range_search_lists(searcher, queries, hits, searcher.resources());
  }

 private:
  CudaSearcher for_task(const ListsTask& task, const MatrixView& queries, const Resources& resources) const {
    return CudaSearcher(device_, *model_, host_model_->metric, parts_, rows_, task, queries.rows(), resources);
  }

  const int device_;
  const std::shared_ptr<const IvfModel> host_model_;
  const std::shared_ptr<const GpuModelCuda> model_;
  GpuParts parts_;
  int64_t rows_ = 0;
};

}  // namespace

std::shared_ptr<const GpuLists> gpu_lists(int device, const std::shared_ptr<const IvfModel>& model,
                                          const std::vector<SharedSegment>& segments, const Resources& resources) {
  return std::make_shared<GpuListsCuda>(device, model, segments, resources);
}

}  // namespace kith
