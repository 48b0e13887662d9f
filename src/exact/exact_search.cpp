#include "exact/exact_search.hpp"

#include "core/cpu_target.hpp"
#include "exact/knn_checks.hpp"
#include "exact/metric_unit.hpp"
#include "rows/finite_check.hpp"

#include <algorithm>
#include <utility>

namespace kith {
namespace {

// Above this share of kept rows it is cheaper to scan all of them than to copy those kept together.
double mask_from(const KnnProblem& problem) {
  if (cpu_engine(problem, cpu_extensions()) == CpuEngine::panels) return 0.6;
  // Copying a row takes as long as comparing it with so many queries as it lies.
  constexpr double kCopy = 10;
  const auto queries = static_cast<double>(problem.queries);
  return queries / (queries + kCopy);
}

// The same on a GPU with a prepared base: reading the kept rows to make operands of them takes as long as multiplying
// the operands that there are with kRead more queries, and the search of one query as long as of kLeast.
double mask_from_on_gpu(const KnnProblem& problem) {
  constexpr double kRead = 400;
  constexpr double kLeast = 120;
  const double queries = static_cast<double>(problem.queries) + kLeast;
  return queries / (queries + kRead);
}

bool keeps_more(double share, int64_t kept, int64_t rows) {
  return static_cast<double>(kept) > share * static_cast<double>(rows);
}

}  // namespace

FilterPath filter_path(const KnnProblem& problem, int64_t kept, Device device, bool prepared) {
  if (kept == problem.rows) return FilterPath::none;
  if (!problem.base_in_memory) return FilterPath::gather;
  if (device.kind == DeviceKind::cuda) {
    const bool most = keeps_more(mask_from_on_gpu(problem), kept, problem.rows);
    return prepared && most ? FilterPath::mask : FilterPath::list;
  }
  // What is not prepared is packed for the search anyway: better only those rows that count.
  const bool scans_as_it_lies = prepared || cpu_engine(problem, cpu_extensions()) == CpuEngine::direct;
  return scans_as_it_lies && keeps_more(mask_from(problem), kept, problem.rows) ? FilterPath::mask : FilterPath::gather;
}

PlannedSearch::PlannedSearch(KnnProblem* problem, const SearchInput& input, const Resources& resources)
    : problem_(problem), search_(input), kept_(input.filter, problem->rows, resources) {
  if (problem->queries == 0 || kept_.count() == 0) return;
  anything_left_ = true;
  const Device device = resolve_device(*problem, resources);
  problem->k = std::min(problem->k, kept_.count());
  const bool cuda = device.kind == DeviceKind::cuda;
  // A GPU goes by what there is; what is there for the CPU is made where it will be used.
  if (cuda && problem->base_in_memory) problem->base_prepared = input.base.prepare(*problem, device, resources);
  const bool prepared = cuda ? problem->base_prepared : input.base.can_prepare();
  const FilterPath path = filter_path(*problem, kept_.count(), device, prepared);
  if (!cuda && (path == FilterPath::none || path == FilterPath::mask)) {
    problem->base_prepared = input.base.prepare(*problem, device, resources);
  }
  plan(path, device, resources);
  // Where no product takes the operands that there are, all rows would be gone over for nothing.
  const bool masked = planned_.plan.cuda_engine == CudaEngine::product && planned_.plan.product.operands_ready;
  if (cuda && path == FilterPath::mask && !masked) plan(FilterPath::list, device, resources);
}

void PlannedSearch::plan(FilterPath path, Device device, const Resources& resources) {
  problem_->filter = path;
  const bool from_host = !problem_->base_prepared && problem_->base_space.host_readable();
  if (path == FilterPath::mask) kept_.bits(resources);
  // Rows that are copied on the host are; a GPU makes the numbers of those that it has from the bits.
  if (path == FilterPath::gather || (path == FilterPath::list && from_host)) kept_.list(resources);
  if (path == FilterPath::gather || path == FilterPath::list) {
    problem_->unfiltered_rows = problem_->rows;
    problem_->rows = kept_.count();
  }
  if (path == FilterPath::gather) {
    problem_->base_in_memory = false;
    base_checked_ = std::exchange(problem_->base_checked, true);
  }
  planned_ = PlannedKnn();  // the next plan may have its memory
  planned_ = plan_knn(*problem_, device, resources);
}

// Here, where their numbers are known; the backend need not look again.
void PlannedSearch::check_gathered(const MatrixView& rows, int64_t first_row) const {
  if (base_checked_) return;
  const Resources quiet = planned_.resources().with_progress({});
  if (problem_->check_finite) refuse_not_finite("base", rows, {first_row, kept_.list()}, quiet);
  if (problem_->metric == Metric::chi_square) refuse_negative("base", rows, {first_row, kept_.list()}, quiet);
}

KnnInput PlannedSearch::input() const {
  const auto walk = [this](const BaseSet::Step& step) {
    const int64_t chunk = planned_.plan.base_chunk;
    if (problem_->filter == FilterPath::gather) {
      walk_gathered(search_.base, kept_.list(), *problem_, chunk, planned_.resources(),
                    [&](const MatrixView& rows, int64_t first_row, const PreparedBase* ready) {
                      check_gathered(rows, first_row);
                      step(rows, first_row, ready);
                    });
    } else {
      // Of a list the backend takes the rows that it wants.
      const int64_t most = problem_->filter == FilterPath::list ? INT64_MAX : chunk;
      search_.base.walk(most, planned_.resources(), step);
    }
  };
  const uint32_t* const numbers = problem_->filter == FilterPath::gather ? kept_.list() : nullptr;
  const bool kept_matters = problem_->filter == FilterPath::mask || problem_->filter == FilterPath::list;
  return {search_.queries, walk, kept_matters ? &kept_ : nullptr, numbers, search_.metric};
}

void search_knn(KnnProblem problem, const SearchInput& input, KnnOutput& output, const Resources& resources) {
  const PlannedSearch search(&problem, input, resources);
  if (search.anything_left()) return run_knn(problem, search.planned(), search.input(), output);
  output.open(1, resources);
  if (!problem.result_space.host_readable() && problem.queries > 0) {
    return write_nothing_cuda(problem.metric, output.destination(0, problem.queries), resources);
  }
  for (int64_t query = 0; query < problem.queries; ++query) {
    const NeighborsView out = output.destination(query, 1);
    write_nothing(problem.metric, out);
    output.done(query, out);
  }
}

}  // namespace kith
