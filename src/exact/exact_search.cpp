#include "exact/exact_search.hpp"

#include <kith/error.hpp>

#include "exact/finite_check.hpp"
#include "exact/knn_checks.hpp"
#include "exact/metric_unit.hpp"

#include <algorithm>
#include <utility>

namespace kith {
namespace {

// Above this share of kept rows it is cheaper to scan all of them than to copy those kept together.
double mask_from(const KnnProblem& problem) {
  if (cpu_engine(problem) == CpuEngine::panels) return 0.6;
  // Copying a row takes as long as comparing it with so many queries as it lies.
  constexpr double kCopy = 10;
  const auto queries = static_cast<double>(problem.queries);
  return queries / (queries + kCopy);
}

}  // namespace

FilterPath filter_path(const KnnProblem& problem, int64_t kept, Device device, bool prepared) {
  if (kept == problem.rows) return FilterPath::none;
  // What is not prepared is packed for the search anyway: better only those rows that count.
  const bool scans_as_it_lies = prepared || cpu_engine(problem) == CpuEngine::direct;
  const bool most = static_cast<double>(kept) > mask_from(problem) * static_cast<double>(problem.rows);
  const bool mask = device == Device::cpu() && problem.base_in_memory && scans_as_it_lies && most;
  return mask ? FilterPath::mask : FilterPath::gather;
}

PlannedSearch::PlannedSearch(KnnProblem* problem, const SearchInput& input, const Resources& resources)
    : problem_(problem), search_(input), kept_(input.filter, problem->rows, resources) {
  if (problem->queries == 0 || kept_.count() == 0) return;
  anything_left_ = true;
  if (kept_.leaves_some_out() && !(problem->base_space.host_readable() && problem->result_space.host_readable())) {
    throw Unsupported(
        "a filter was given for data in a GPU's memory; hand over the base and the results in host memory");
  }
  const Device device = resolve_device(*problem, resources);
  path_ = filter_path(*problem, kept_.count(), device, input.base.can_prepare());
  if (path_ == FilterPath::gather) {
    list_ = kept_.list(resources);
    problem->rows = kept_.count();
    problem->base_in_memory = false;
    base_checked_ = std::exchange(problem->base_checked, true);
  } else {
    if (path_ == FilterPath::mask) bits_ = kept_.bits(resources);
    problem->base_prepared = input.base.prepare(*problem, device, resources);
  }
  problem->k = std::min(problem->k, kept_.count());
  planned_ = plan_knn(*problem, device, resources);
}

// Here, where their numbers are known; the backend need not look again.
void PlannedSearch::check_gathered(const MatrixView& rows, int64_t first_row) const {
  if (base_checked_) return;
  const Resources quiet = planned_.resources().with_progress({});
  if (problem_->check_finite) refuse_not_finite("base", rows, {first_row, list_}, quiet);
  if (problem_->metric == Metric::chi_square) refuse_negative("base", rows, {first_row, list_}, quiet);
}

KnnInput PlannedSearch::input() const {
  const auto walk = [this](const BaseSet::Step& step) {
    const int64_t chunk = planned_.plan.base_chunk;
    if (path_ == FilterPath::gather) {
      walk_gathered(search_.base, list_, *problem_, chunk, planned_.resources(),
                    [&](const MatrixView& rows, int64_t first_row, const PreparedBase* ready) {
                      check_gathered(rows, first_row);
                      step(rows, first_row, ready);
                    });
    } else {
      search_.base.walk(chunk, planned_.resources(), step);
    }
  };
  return {search_.queries, walk, bits_, list_};
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
