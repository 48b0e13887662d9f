#include "exact/exact_search.hpp"

#include <kith/error.hpp>
#include <kith/matrix_buffer.hpp>

#include "core/cpu_target.hpp"
#include "core/dispatch.hpp"
#include "core/float_mode.hpp"
#include "core/host_array.hpp"
#include "core/result_exit.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/panels/panel_format.hpp"
#include "kernels/select/other_neighbors.hpp"
#include "rows/finite_check.hpp"
#include "rows/knn_checks.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace kith {
namespace {

// Cost of copying and packing a row, as a number of queries that a row of a prepared base is multiplied with. Measured
// with 7 to 1,000 queries and a tenth to four fifths of the rows kept; about the same for any number of columns.
double queries_of_packing(const SearchShape& shape, const CpuExtensions& cpu) {
  const KeyKind kind = key_kind(shape.metric);
  const PanelFormat format = choose_panel_format(kind, shape.query_dtype, shape.base_dtype, shape.cols, cpu);
  if (holds_bytes(format)) return 140;
  if (format != PanelFormat::f32) return has_fast_rounded_product(cpu) ? 450 : 150;
  return is_product(kind) ? 90 : 35;
}

// Above this share of kept rows it is cheaper to scan all of them than to copy those kept together.
double mask_from(const SearchTask& task, CpuEngine engine, const CpuExtensions& cpu) {
  const auto queries = static_cast<double>(task.shape.queries);
  if (engine == CpuEngine::panels) {
    constexpr double kRead = 0.05;  // what a row of panels takes before any query, beside copying and packing it
    const double pack = queries_of_packing(task.shape, cpu);
    return (queries + kRead * pack) / (queries + pack);
  }
  // Cost of copying one row, in distance computations: higher behind a screen of bytes, and when other cores use the
  // memory.
  const double copy = few_want_prepared_cpu(task, cpu) ? 11 : 5;
  return queries / (queries + copy);
}

// The same on a GPU with a prepared base. Making operands of the kept rows costs as much as multiplying the existing
// ones with kRead more queries; searching one query costs as much as kLeast.
double mask_from_on_gpu(const SearchTask& task) {
  constexpr double kRead = 400;
  constexpr double kLeast = 120;
  const double queries = static_cast<double>(task.shape.queries) + kLeast;
  return queries / (queries + kRead);
}

bool keeps_more(double share, int64_t kept, int64_t rows) {
  return static_cast<double>(kept) > share * static_cast<double>(rows);
}

}  // namespace

FilterPath filter_path(const SearchTask& task, int64_t kept, Device device, bool prepared, const CpuExtensions& cpu) {
  if (kept == task.shape.rows) return FilterPath::none;
  if (!task.shape.base_in_memory) return FilterPath::gather;
  if (device.kind == DeviceKind::cuda) {
    const bool most = keeps_more(mask_from_on_gpu(task), kept, task.shape.rows);
    return prepared && most ? FilterPath::mask : FilterPath::list;
  }
  // Rows of an unprepared base must be packed anyway: pack only the kept ones.
  const CpuEngine engine = prepared && pays_to_prepare_cpu(task) ? CpuEngine::panels : cpu_engine(task, cpu);
  const bool scans_as_it_lies = prepared || engine == CpuEngine::direct;
  return scans_as_it_lies && keeps_more(mask_from(task, engine, cpu), kept, task.shape.rows) ? FilterPath::mask
                                                                                             : FilterPath::gather;
}

PlannedSearch::PlannedSearch(const SearchShape& shape, const SearchRequest& request, const SearchInput& input,
                             const Resources& resources)
    : input_(input), task_(search_of(shape, request)), kept_(input.filter, shape.rows, resources) {
  if (!anything_to_find()) return;
  const Device device = resolve_device(task_, resources);
  const bool cuda = device.kind == DeviceKind::cuda;
  BaseLayouts* const layouts = input.layouts;
  const auto prepare = [&] { return layouts != nullptr && layouts->prepare(task_, device, resources); };
  // A GPU uses the layout that exists. For the CPU it is built once the filter path is known.
  bool prepared = cuda && prepare();
  const bool can_be = cuda ? prepared : layouts != nullptr && layouts->can_prepare();
  const FilterPath path = filter_path(task_, kept_.count(), device, can_be, cpu_extensions());
  if (!cuda && (path == FilterPath::none || path == FilterPath::mask)) prepared = prepare();
  make_plan(path, prepared, device, resources);
  if (!cuda || path != FilterPath::mask) return;
  // If no product uses the existing operands, masking would only add work for rows that are left out.
  const auto& planned = std::get<KnnCudaPlan>(planned_.plan);
  if (!planned.product || !planned.product->operands_ready) make_plan(FilterPath::list, prepared, device, resources);
}

void PlannedSearch::make_plan(FilterPath path, bool prepared, Device device, const Resources& resources) {
  task_.apply_filter(path, kept_.count());
  task_.prepared = prepared;
  const bool from_host = !prepared && task_.shape.base_space.host_readable();
  if (path == FilterPath::mask) kept_.bits(resources);
  // The host needs the list of kept rows to copy them; a GPU makes the numbers of its own rows from the bits.
  if (path == FilterPath::gather || (path == FilterPath::list && from_host)) kept_.list(resources);
  planned_ = PlannedKnn();  // the next plan may have its memory
  planned_ = plan_knn(task_, device, resources);
}

PlannedSearch::PlannedSearch(const SearchTask& task, PlannedKnn planned, const SearchInput& input)
    : input_(input),
      task_(task),
      kept_(input.filter, task.shape.rows, planned.resources()),
      planned_(std::move(planned)) {}

void PlannedSearch::open(int64_t batch) const {
  if (!task_.gathers()) input_.base.open(plan().base_chunk, resources());
  input_.queries.open(batch, resources());
}

void PlannedSearch::scan(SearchBackend& backend, int64_t first_query, int64_t queries, ProgressMeter& meter) const {
  backend.begin(input_.queries.fetch(first_query, queries), first_query);
  if (task_.gathers()) return scan_gathered(backend, meter);
  // The backend selects rows from a list by itself.
  const bool whole = task_.filter == FilterPath::list;
  const int64_t chunk = whole ? INT64_MAX : plan().base_chunk;
  for (int64_t first = 0; first < input_.base.rows();) {
    const int64_t block = input_.base.together(first);
    const PreparedBase* const ready = input_.layouts == nullptr ? nullptr : input_.layouts->of(first);
    const int64_t count = ready != nullptr ? block : std::min(chunk, block);
    backend.scan(input_.base.fetch(first, count), first, ready, meter);
    meter.poll();
    first += count;
  }
}

// Scans the rows that the filter keeps, copied together piece by piece and numbered by their position in the list. They
// are checked here, where their original numbers are known.
void PlannedSearch::scan_gathered(SearchBackend& backend, ProgressMeter& meter) const {
  const Resources& resources = planned_.resources();
  const Resources quiet = resources.with_progress({});
  const SearchShape& shape = task_.shape;
  const int64_t most = std::min(plan().base_chunk, kept_.count());
  MatrixBuffer buffer(shape.base_dtype, most, shape.cols, "the rows that the filter keeps", resources);
  for (int64_t first = 0; first < kept_.count(); first += most) {
    const MutableMatrixView rows = buffer.mutable_view().slice(0, std::min(most, kept_.count() - first));
    input_.base.gather(kept_.list() + first, rows.rows(), rows, resources);
    const RowNumbers numbers{first, kept_.list()};
    if (!shape.base_checked && task_.request.check_finite) refuse_not_finite("base", rows, numbers, quiet);
    if (!shape.base_checked && shape.metric == Metric::chi_square) refuse_negative("base", rows, numbers, quiet);
    backend.scan(rows, first, nullptr, meter);
    meter.poll();
  }
}

const KeptRows* PlannedSearch::kept() const {
  const bool used = task_.filter == FilterPath::mask || task_.filter == FilterPath::list;
  return used ? &kept_ : nullptr;
}

namespace {

// Converts and writes the packed neighbours of queries first_query, first_query + 1, ...
void write_neighbors(const SearchTask& task, const uint64_t* neighbors, const uint32_t* numbers, int64_t first_query,
                     const NeighborsView& out) {
  const ResultExit result(task.shape.metric, numbers);
  for (int64_t q = 0; q < out.queries; ++q) {
    const uint32_t itself = task.request.without_self ? static_cast<uint32_t>(first_query + q) : OtherNeighbors::kNoOne;
    OtherNeighbors others{neighbors + q * task.k, task.k, itself};
    for (int64_t i = 0; i < out.k; ++i) {
      const uint64_t neighbor = others.next();
      out.ids[q * out.k + i] = result.id(neighbor);
      out.distances[q * out.k + i] = result.distance(neighbor);
    }
  }
}

// Writes to `out`, which holds the results of all queries, or to the sink if there is one.
void search_batches(const PlannedSearch& search, const NeighborsView& out, const NeighborsSink* sink) {
  const DefaultFloatMode mode;
  const SearchTask& task = search.task();
  const Resources& resources = search.resources();
  const int64_t batch = search.plan().query_batch;
  const std::unique_ptr<KnnBackend> backend = dispatch(
      search.plan().device, [&] { return make_knn_cpu(task, search.plan_as<KnnCpuPlan>(), search.kept(), resources); },
      [&](int) {
        return make_knn_cuda(task, search.plan_as<KnnCudaPlan>(), {search.kept(), search.metric(), &search.beyond()},
                             resources);
      });
  const int64_t packed = task.request.result_space.host_readable() ? batch * task.k : 0;
  const HostArray<uint64_t> neighbors(packed, "the packed neighbours", resources);
  search.open(batch);
  Neighbors part = sink == nullptr ? Neighbors() : Neighbors(batch, task.request.k, resources);
  ProgressMeter meter("search", task.shape.queries * task.rows, resources);
  for (int64_t first = 0; first < task.shape.queries; first += batch) {
    const int64_t count = std::min(batch, task.shape.queries - first);
    search.scan(*backend, first, count, meter);
    NeighborsView to = sink == nullptr ? out : part.view();
    to.queries = count;
    if (sink == nullptr) {
      to.ids += first * out.k;
      to.distances += first * out.k;
    }
    if (to.space.host_readable()) {
      backend->finish(neighbors.data());
      write_neighbors(task, neighbors.data(), search.numbers(), first, to);
    } else {
      backend->finish_on_device(to);
    }
    if (sink != nullptr) (*sink)(first, to);
  }
  meter.finish();
}

}  // namespace

void KnnBackend::finish_on_device(const NeighborsView&) {
  throw InvalidState("this backend has no device memory to write to");
}

void search_knn(const PlannedSearch& search, const NeighborsView& out) { search_batches(search, out, nullptr); }

void search_knn(const SearchShape& shape, const SearchRequest& request, const SearchInput& input,
                const NeighborsView& out, const Resources& resources) {
  const PlannedSearch search(shape, request, input, resources);
  if (search.anything_to_find()) return search_knn(search, out);
  if (out.space.host_readable()) return write_nothing(shape.metric, out);
  if (shape.queries > 0) write_nothing_cuda(shape.metric, out, resources);
}

void search_knn(const SearchShape& shape, const SearchRequest& request, const SearchInput& input,
                const NeighborsSink& sink, const Resources& resources) {
  const PlannedSearch search(shape, request, input, resources);
  if (search.anything_to_find()) return search_batches(search, {}, &sink);
  Neighbors nothing(1, request.k, resources);
  write_nothing(shape.metric, nothing.view());
  for (int64_t query = 0; query < shape.queries; ++query) sink(query, nothing.view());
}

}  // namespace kith
