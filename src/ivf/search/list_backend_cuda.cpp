#include "ivf/search/list_backend_cuda.hpp"

#include "core/byte_size.hpp"
#include "core/divide.hpp"
#include "core/host_array.hpp"
#include "core/typed_row.hpp"
#include "exact/few_queries_cuda.hpp"
#include "exact/prepared_base_cuda.hpp"
#include "exact/search_backend.hpp"
#include "ivf/search/left_queries_cuda.hpp"
#include "ivf/search/long_lists_cuda.hpp"
#include "kernels/select/write_neighbors_cuda.hpp"
#include "rows/finite_check.hpp"
#include "rows/kept_rows.hpp"
#include "rows/rows_cuda.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

namespace kith {
namespace {

constexpr int64_t kFirstHits = int64_t{1} << 22;  // initial capacity for hits

class CudaBackend final : public ListsBackend {
 public:
  CudaBackend(const CudaSearchData& search, const ListsRound& round, const ListsCudaPlan& plan,
              const Resources& planned)
      : search_(search),
        task_(search.task),
        round_(round),
        plan_(plan),
        resources_(planned.with_progress({})),
        context_(search.context),
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
    now_ = {at(layout_.rows), DType::f32, {count, cols, cols}, MemorySpace::cuda(context_->device())};
    if (here) {
      bring(queries);
    } else if (follow_each_other()) {
      now_ = queries.slice(numbers.front(), count);
    } else {
      gather_floats_cuda(queries, {numbers.begin(), numbers.end()}, at(layout_.rows), resources_);
    }
    if (in_pieces()) search_.in_pieces->pieces->begin();  // after the queries, which would wait for the bus
  }

  std::vector<uint32_t> rank() override {
    if (few_) {
      rank_few();
      return limit_probes();
    }
    if (ranking_ == nullptr) {  // a single list
      context_->fill(at(layout_.probes), 0, count());
      return {};
    }
    const GpuCentres& centres = *search_.model.centres();
    ProgressMeter meter("rank", count() * search_.lists, resources_);
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

  void nearest(uint64_t* neighbors, ProgressMeter& meter) override {
    const int64_t found = count() * task_.k;
    const bool on_page = few_ && !in_pieces() && search_.parts.size() == 1 && plan_.parts[0].direct &&
                         array_bytes<uint64_t>(found) <= PinnedPage::kDownBytes - kFewReportBytes;
    auto* const page = on_page ? reinterpret_cast<uint64_t*>(few_->page().down() + kFewReportBytes) : nullptr;
    if (on_page) {
      search_parts(meter, page);
    } else {
      context_->copy_values(neighbors, search_parts(meter), found);
    }
    wait();
    check_queries();
    if (on_page) std::copy_n(page, found, neighbors);
  }

  void nearest_on_device(const NeighborsView& out, ProgressMeter& meter) override {
    const int64_t k = task_.k;
    const DeviceLists found{search_parts(meter), nullptr, count(), k};
    const auto to = [&](int64_t query, int64_t queries) -> NeighborsView {
      return {out.ids + query * k, out.distances + query * k, queries, k, out.space};
    };
    if (follow_each_other()) {
      launch_write_neighbors(search_.metric, found, to(numbers_.front(), count()), context_->stream());
    } else {  // few, as a rule
      int64_t* const ids = at(layout_.written_ids);
      float* const distances = at(layout_.written_distances);
      launch_write_neighbors(search_.metric, found, {ids, distances, count(), k, out.space}, context_->stream());
      for (int64_t i = 0; i < count(); ++i) {
        const NeighborsView one = to(numbers_[static_cast<size_t>(i)], 1);
        context_->copy_values(one.ids, ids + i * k, k);
        context_->copy_values(one.distances, distances + i * k, k);
      }
    }
    wait();
    check_queries();
  }

  // If the hits exceed the room, the search is repeated with more room or for fewer queries.
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

  bool in_pieces() const { return search_.in_pieces.has_value(); }

  void wait() {
    context_->synchronize();
    if (few_) few_->page().finished();
  }

  bool checks_queries() const { return few_ && task_.check_finite && !round_.again; }
  // Call after synchronising.
  void check_queries() const {
    if (!checks_queries()) return;
    const uint32_t bad = reinterpret_cast<const FewReport*>(few_->page().down())->bad_query;
    if (bad != kNoBadRow) throw_not_finite("query", numbers_.front() + int64_t{bad});
  }

  // The nearest lists of few queries, in one launch; it zeroes what the scan after it counts in.
  void rank_few() const {
    FewNearestTask task;
    const auto& layout = dynamic_cast<const PreparedBaseCuda&>(search_.model.centres()->layout());
    task.distance.queries = device_rows(now_);
    task.distance.rows = layout.rows();
    task.distance.cols = shape_.cols;
    task.distance.kind = key_kind(search_.metric);
    task.distance.keys = at(layout_.rank_keys);
    task.distance.stride = search_.lists;
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
    launch_few_nearest(task, few_->with_launch(), search_.gpu.multiprocessors, context_->stream());
  }
  bool zeroes_early() const {
    return few_ && !in_pieces() && !plan_.parts.empty() && plan_.parts[0].batch >= count();
  }

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
    task.sizes = search_.sizes.data();
    task.lists = search_.lists;
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
    task.leaves_direct = suits_left_queries(task, shape, plan, search_.metric);
    launch_ivf_search(task, shape, plan, at(layout_.scan), context_->stream());
    if (!task.leaves_direct) return;
    search_left_queries(task, shape, plan, search_.metric, at(layout_.scan), context_,
                        search_.resources.with_progress({}));
  }

  // The best neighbours of the batch's queries; where there is one part they can be written elsewhere.
  uint64_t* search_parts(ProgressMeter& meter, uint64_t* elsewhere = nullptr) {
    if (in_pieces()) return search_pieces(meter);
    FoundLists lists = found_lists();
    if (elsewhere != nullptr) lists[0] = elsewhere;
    for (size_t p = 0; p < search_.parts.size(); ++p) {
      IvfSearchTask task = task_of(scanned_of(*search_.parts[p]));
      task.terms = search_.terms[p];
      task.neighbors = lists[p == 0 ? 0 : 1];
      task.zeroed = p == 0 && zeroes_early();
      search_part(task, search_.shape_of(p, count(), round_.slots), plan_.parts[p]);
      if (p > 0) bring_together(lists);
    }
    return lists[0];
  }

  // The best so far, what one part has, and room for the best of both.
  using FoundLists = std::array<uint64_t*, 3>;
  FoundLists found_lists() const {
    FoundLists lists{};
    for (size_t i = 0; i < lists.size(); ++i) {
      lists[i] = at(layout_.found) + static_cast<int64_t>(i) * count() * task_.k;
    }
    return lists;
  }
  void bring_together(FoundLists& lists) const {
    launch_merge_found(lists[0], lists[1], count(), task_.k, lists[2], context_->stream());
    std::swap(lists[0], lists[2]);
  }

  PreparedSegmentCuda::Scanned scanned_of(const PreparedSegmentCuda& part) const {
    return part.scanned(task_.k, task_.kept != nullptr);
  }

  IvfSearchTask task_of(const PreparedSegmentCuda::Scanned& part) const {
    IvfSearchTask task;
    task.lists = part.lists;
    task.prepared = part.prepared;
    task.queries = static_cast<const float*>(now_.data());
    task.query_stride = now_.row_stride();
    task.probes = at(layout_.probes);
    task.kept = search_.kept.data();
    task.repeats = part.repeats;
    return task;
  }

  void search_part(IvfSearchTask task, const IvfSearchShape& shape, const IvfSearchPlan& plan) const {
    const ListsApart apart(task, shape, plan, search_.metric, context_, search_.resources.with_progress({}));
    task.probes = apart.probes();
    if (apart.bounds().bounds != nullptr) task.elsewhere = apart.bounds();
    scan_part(task, shape, plan);
    apart.bring_in();
  }

  // Waits for what was enqueued when it goes: pieces are not freed before.
  struct WaitsAtEnd {
    const DeviceContext& context;
    ~WaitsAtEnd() { (void)cudaStreamSynchronize(context.stream()); }
  };

  // Queries and their ranked lists stay; pieces come and go. What was found in those before bounds what is looked for,
  // and before the first one a sample of all lists does.
  uint64_t* search_pieces(ProgressMeter& meter) {
    const WaitsAtEnd waits{*context_};
    FoundLists lists = found_lists();
    ListPieces& pieces = *search_.in_pieces->pieces;
    context_->fill(lists[0], 0xFF, count() * task_.k);
    context_->fill(at(layout_.bounds), 0xFF, count());
    bounded_ = false;
    pieces.expect(ranked(), *context_);
    if (const std::optional<ListPieces::Piece> sample = pieces.sample(*context_)) {
      bounded_ = search_sample(*sample, lists[1]);
      pieces.release(*context_);
    }
    while (const std::optional<ListPieces::Piece> piece = pieces.next(*context_)) {
      meter.poll();
      search_piece(*piece, lists);
      pieces.release(*context_);
    }
    pieces.end(*context_);
    return lists[0];
  }

  RankedProbes ranked() const { return {at(layout_.probes), count(), round_.slots}; }

  // Returns false if there is no room for it.
  bool search_sample(const ListPieces::Piece& sample, uint64_t* found) const {
    IvfSearchShape shape = search_.shape_of_piece(sample.scanned, sample.filled, count(), round_.slots);
    shape.bounded = false;
    const IvfSearchPlan plan = plan_ivf_search(shape, plan_.scan_bytes);
    if (plan.bytes > plan_.scan_bytes) return false;
    IvfSearchTask task = task_of(sample.scanned);
    task.neighbors = found;
    search_part(task, shape, plan);
    launch_lower_bounds(found, count(), task_.k, at(layout_.bounds), context_->stream());
    return true;
  }

  // For the queries that look at it alone.
  void search_piece(const ListPieces::Piece& piece, const FoundLists& lists) const {
    const int64_t queries = piece.probes.queries;
    const int64_t most = piece.probes.most;
    const QueriesHere here{at(layout_.numbers_here), at(layout_.rows_here), at(layout_.probes_here),
                           at(layout_.bounds_here)};
    const cudaStream_t stream = context_->stream();
    IvfSearchShape shape = search_.shape_of_piece(piece.scanned, piece.filled, queries, most);
    shape.bounded = shape.bounded && bounded_;
    const IvfSearchPlan plan = plan_ivf_search(shape, plan_.scan_bytes);
    if (plan.bytes > plan_.scan_bytes) {
      throw OutOfMemory("the lists' lengths differ so much that a search in pieces lacks memory on the GPU; raise the "
                        "device memory limit, or search on the CPU",
                        search_.resources.device_memory()->used() + plan.bytes - plan_.scan_bytes);
    }
    launch_take_here({ranked(), piece.range, most, static_cast<const float*>(now_.data()), now_.row_stride(),
                      shape_.cols, at(layout_.bounds), piece.taken, here},
                     stream);
    IvfSearchTask task = task_of(piece.scanned);
    task.queries = here.rows;
    task.query_stride = shape_.cols;
    task.probes = here.probes;
    task.elsewhere = {here.bounds, 1};
    task.neighbors = lists[1];
    search_part(task, shape, plan);
    launch_merge_here({here.numbers, queries, task_.k, lists[1], lists[2], lists[0], at(layout_.bounds)}, stream);
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
    task.kept = search_.kept.data();
    task.most = *task_.most;
    task.multiprocessors = search_.gpu.multiprocessors;
    task.hits = memory.hits();
    context_->fill(memory.total.data(), 0, 1);
    context_->fill(memory.counts.data(), 0, queries);
    for (const auto& part : search_.parts) {
      task.lists = part->lists();
      launch_list_range(task, context_->stream());
    }
    unsigned long long total = 0;
    context_->copy_values(&total, memory.total.data(), 1);
    context_->synchronize();
    return static_cast<int64_t>(total);
  }

  // In host memory they count against the caller's remaining limit, since their number was not known before.
  void hand_over(const HitMemory& memory, int64_t first, int64_t queries, int64_t total, RangeHits& hits) const {
    const HostArray<uint32_t> counts(queries, "the vectors in range", search_.resources);
    const HostArray<int64_t> places(queries, "the vectors in range", search_.resources);
    context_->copy_values(counts.data(), memory.counts.data(), queries);
    context_->synchronize();
    int64_t place = 0;
    for (int64_t q = 0; q < queries; ++q) {
      places[q] = place;
      place += counts[q];
    }
    context_->copy_values(memory.starts.data(), places.data(), queries);
    launch_group_hits(memory.hits(), total, memory.starts.data(), memory.grouped.data(), context_->stream());
    const HostArray<uint64_t> neighbors(total, "the vectors in range", search_.resources);
    context_->copy_values(neighbors.data(), memory.grouped.data(), total);
    context_->synchronize();
    for (int64_t q = 0; q < queries; ++q) {
      hits.add(0, numbers_[static_cast<size_t>(first + q)], neighbors.data() + places[q], counts[q]);
    }
  }

  const CudaSearchData& search_;
  const IvfSearch& task_;
  const ListsRound round_;
  const ListsCudaPlan plan_;
  const Resources resources_;
  const std::shared_ptr<const DeviceContext>& context_;
  const RoundShape shape_;
  const HostArray<float> staged_;
  const RoundLayout layout_;
  const DeviceBuffer memory_;
  std::unique_ptr<KnnBackend> ranking_;  // null for a single list or few queries
  std::optional<FewQueries> few_;
  std::span<const uint32_t> numbers_;
  MatrixView now_;  // the current queries, on the device
  int64_t capacity_ = std::min(kFirstHits, plan_.hits);
  int64_t together_ = kMostProbes;
  bool bounded_ = false;  // a sample of lists in pieces has been searched
};

// What lookups find beside the lists of each part; none where a plan will not look codes up.
std::vector<ScanTerms> terms_for(const CudaSearchData& search, int64_t queries) {
  const Resources each = sharing_spare(search.resources, search.parts.size());
  std::vector<ScanTerms> terms(search.parts.size());
  for (size_t p = 0; p < terms.size(); ++p) {
    const PreparedSegmentCuda& part = *search.parts[p];
    IvfSearchShape shape = search.shape_of(p, queries, search.task.probes);
    const auto looks_up = [&](ScanTerm term) {
      shape.term = term;
      return plan_ivf_search(shape, INT64_MAX).tables;
    };
    // Without a question to the device where lookups would not even pay with the best term.
    if (looks_up(ScanTerm::of_vector) && looks_up(part.scan_term(each))) terms[p] = part.scan_terms(each);
  }
  return terms;
}

}  // namespace

Resources sharing_spare(const Resources& resources, size_t segments) {
  return SpareDeviceMemory::divided(resources, static_cast<int64_t>(2 * segments));
}

CudaSearchData::CudaSearchData(int device, const GpuModelCuda& of_model, Metric of_metric, const GpuParts& of_parts,
                               int64_t rows, const IvfSearch& wanted, int64_t queries, const Resources& given,
                               const std::optional<InPieces>& pieces)
    : guard(device),
      context(std::make_shared<const DeviceContext>(device, given.options().stream)),
      resources(given.with_device(Device::cuda(device)).with_stream(context->stream())),
      gpu(usable_gpu_when_idle(Device::cuda(device))),
      model(of_model),
      metric(of_metric),
      parts(of_parts),
      task(wanted),
      in_pieces(pieces),
      lists(of_parts.front()->lists().lists),
      terms(of_parts.size()) {
  if (task.kept != nullptr) {
    kept = DeviceArray<uint64_t>(KeptRows::words_for(rows), "the filter on the device", context, resources);
    context->copy_values(kept.data(), task.kept, kept.size());
  }
  if (task.fewest > 0) {
    sizes = DeviceArray<uint32_t>(lists, "the lists' sizes", context, resources);
    if (task.sizes != nullptr) {
      context->copy_values(sizes.data(), task.sizes, lists);
    } else {
      context->fill(sizes.data(), 0, lists);
      for (const auto& part : parts) {
        launch_add_list_sizes(part->lists(), kept.data(), sizes.data(), context->stream());
      }
    }
  }
  if (!task.most && !in_pieces) terms = terms_for(*this, queries);
}

IvfSearchShape CudaSearchData::shape_of(size_t part, int64_t queries, int64_t slots) const {
  const PreparedSegmentCuda::Scanned scanned = parts[part]->scanned(task.k, task.kept != nullptr);
  if (in_pieces) return shape_of_piece(scanned, 0, queries, slots);
  return shape_of(scanned, terms[part].term, queries, slots);
}

IvfSearchShape CudaSearchData::shape_of_piece(const PreparedSegmentCuda::Scanned& piece, int64_t filled,
                                              int64_t queries, int64_t slots) const {
  IvfSearchShape shape = shape_of(piece, ScanTerm::none, queries, slots);
  shape.filled = filled > 0 ? filled : in_pieces->filled;
  if (shape.longest == 0) shape.longest = in_pieces->longest;
  shape.tables = 0;  // one way for all pieces: what it takes is known before they come
  // Bounds shorten the reaches of these alone.
  shape.bounded = has_differences(shape.kind) && !has_norm_keys(shape.format, shape.kind);
  return shape;
}

IvfSearchShape CudaSearchData::shape_of(const PreparedSegmentCuda::Scanned& scanned, ScanTerm term, int64_t queries,
                                        int64_t slots) const {
  const DeviceListsView& listed = scanned.lists;
  IvfSearchShape shape;
  shape.format = listed.codec.format;
  shape.kind = listed.kind;
  shape.unit = listed.unit;
  shape.queries = queries;
  shape.slots = slots;
  shape.k = task.k;
  shape.lists = listed.lists;
  shape.vectors = listed.count;
  shape.longest = scanned.longest;
  shape.row_terms = scanned.prepared.upper_terms != nullptr;
  shape.multiprocessors = gpu.multiprocessors;
  shape.warpgroups = product_engine(gpu.compute_capability) == ProductEngine::wgmma;
  shape.repeats = scanned.repeats != nullptr && task.kept == nullptr;
  shape.term = term;
  return shape;
}

RoundShape CudaSearchData::round_shape(const ListsRound& round, bool few) const {
  const bool on_host = round.query_space.host_readable();
  return {.cols = cols(),
          .slots = round.slots,
          .k = task.k,
          .found_lists = parts.size() > 1 || in_pieces ? 3 : 1,
          .stages = on_host && (round.again || round.dtype != DType::f32),
          .brings = on_host || round.again,
          .may_be_short = task.fewest > 0,
          .writes_singly = round.again && !round.result_space.host_readable(),
          .in_pieces = in_pieces.has_value(),
          .ranked_lists = few ? lists : 0,
          .multiprocessors = gpu.multiprocessors};
}

SearchTask CudaSearchData::ranking_task(const ListsRound& round, int64_t queries) const {
  SearchShape shape;
  shape.queries = queries;
  shape.rows = lists;
  shape.cols = cols();
  shape.metric = metric;
  shape.query_space = shape.base_space = MemorySpace::cuda(context->device());
  shape.base_checked = true;
  const bool check = task.check_finite && !round.again;  // of queries that follow each other
  SearchTask ranking = search_of(shape, {.k = round.slots, .check_finite = check, .result_space = shape.base_space});
  ranking.prepared = true;
  return ranking;
}

std::unique_ptr<ListsBackend> make_cuda_backend(const CudaSearchData& search, const ListsRound& round,
                                                const ListsCudaPlan& plan, const Resources& planned) {
  return std::make_unique<CudaBackend>(search, round, plan, planned);
}

}  // namespace kith
