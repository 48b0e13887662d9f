// Exact search on the CPU: fast f32 arithmetic finds candidates, the canonical distance decides among them.
//
// Many queries: a blocked matrix product over packed panels, fused with the comparison against each query's threshold,
// so that distances never leave the registers (product_scan). Few queries: one pass over the rows as they lie
// (direct_scan), at the speed of memory. Either way every row outside the candidate lists is excluded by the error
// bounds, and what is returned was computed by distance_cpu's canonical routine.
//
// Work is cut into tasks of a block of queries and a range of rows. Which thread does which, how the rows are split and
// what the thresholds were at the time changes only which rows become candidates, never the result.
#include <kith/error.hpp>

#include "core/byte_size.hpp"
#include "core/float_mode.hpp"
#include "core/memory_budget.hpp"
#include "core/ordered_key.hpp"
#include "exact/direct_scan.hpp"
#include "exact/finite_check.hpp"
#include "exact/knn_backend.hpp"
#include "exact/packed_base.hpp"
#include "exact/product_scan.hpp"
#include "exact/query_set.hpp"
#include "kernels/select/candidate_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <new>
#include <vector>

namespace kith {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class KnnCpu final : public KnnBackend {
 public:
  KnnCpu(const KnnProblem& problem, const KnnPlan& plan, const Resources& resources)
      : problem_(problem),
        plan_(plan),
        kind_(key_kind(problem.metric)),
        resources_(resources),
        queries_(kind_, plan.query_batch, problem.cols, plan.engine == CpuEngine::product, resources),
        best_(plan.query_batch * problem.k * static_cast<int64_t>(sizeof(uint64_t)), "the nearest so far", resources),
        list_memory_(list_count() * CandidateList::bytes_for(problem.k), "the candidate lists", resources),
        scratch_memory_(resources.threads() * CandidateScratch::bytes_for(problem.k), "selection", resources),
        thresholds_(static_cast<size_t>(plan.query_batch)) {
    // The lists first, then their candidates.
    std::byte* const candidates = list_memory_.data() + list_count() * static_cast<int64_t>(sizeof(CandidateList));
    const int64_t bytes = CandidateList::capacity_for(problem.k) * CandidateList::kBytesPerCandidate;
    for (int64_t i = 0; i < list_count(); ++i) new (lists() + i) CandidateList(candidates + i * bytes, problem.k);
    for (int slot = 0; slot < resources.threads(); ++slot) {
      scratch_.emplace_back(scratch_memory_.data() + slot * CandidateScratch::bytes_for(problem.k), problem.k);
    }
  }

  void begin(const MatrixView& queries, int64_t first_query) override {
    if (kind_ == KeyKind::chi_square) refuse_negative("query", queries, first_query, resources_);
    queries_.load(queries, problem_.check_finite, first_query);
    std::fill_n(best(0), queries.rows() * problem_.k, kPadding);
  }

  void scan(const MatrixView& base, int64_t first_row, const PreparedBase* ready, ProgressMeter& meter) override {
    const ScanContext context{base, queries_, kind_, lists(), scratch_, plan_, meter, resources_, thresholds_};
    for (int64_t query = 0; query < queries_.size(); ++query) {
      const float threshold = largest_key_that_matters(query);
      thresholds_[static_cast<size_t>(query)] = threshold;
      for (int64_t split = 0; split < plan_.row_splits; ++split) context.list(query, split).reset(threshold);
    }
    const bool check = problem_.check_finite && !problem_.base_checked;
    if (kind_ == KeyKind::chi_square && !problem_.base_checked) refuse_negative("base", base, first_row, resources_);
    if (plan_.engine == CpuEngine::direct) {
      direct_scan(context, check, first_row);
    } else {
      product_scan(context, dynamic_cast<const PackedBase*>(ready), check, first_row);
    }
    parallel_for(queries_.size(), meter, resources_, [&](int64_t query, int slot) {
      for (int64_t split = 0; split < plan_.row_splits; ++split) {
        context.list(query, split)
            .finish(best(query), static_cast<uint32_t>(first_row), scratch_[static_cast<size_t>(slot)],
                    context.scorer(query));
      }
    });
  }

  void finish(uint64_t* neighbors) override { std::copy_n(best(0), queries_.size() * problem_.k, neighbors); }

 private:
  int64_t list_count() const { return plan_.query_batch * plan_.row_splits; }
  CandidateList* lists() const { return list_memory_.as<CandidateList>(); }
  float largest_key_that_matters(int64_t query) const {
    const uint64_t kth = best(query)[problem_.k - 1];
    const float key = kth == kPadding ? kInfinity : key_of_ordered(ordered_of(kth));
    return key < kInfinity ? key : kInfinity;  // a NaN excludes nothing
  }
  uint64_t* best(int64_t query) const { return best_.as<uint64_t>() + query * problem_.k; }

  const KnnProblem problem_;
  const KnnPlan plan_;
  const KeyKind kind_;
  const Resources resources_;
  QuerySet queries_;
  HostBuffer best_;
  HostBuffer list_memory_;
  HostBuffer scratch_memory_;
  std::vector<CandidateScratch> scratch_;
  std::vector<std::atomic<float>> thresholds_;
};

}  // namespace

std::unique_ptr<KnnBackend> make_knn_cpu(const KnnProblem& problem, const KnnPlan& plan, const Resources& resources) {
  return std::make_unique<KnnCpu>(problem, plan, resources);
}

std::shared_ptr<PreparedBase> prepare_base_cpu(const MatrixView& base, const PrepareOptions& options,
                                               const Resources& resources) {
  const DefaultFloatMode mode;
  const KeyKind kind = key_kind(options.metric);
  // A search needs memory too.
  const int64_t bytes = PackedBase::bytes_for(base.rows(), base.cols(), resources.threads());
  if (bytes > resources.host_memory()->available() / 2) {
    throw OutOfMemory(fmt::format("it needs {}, more than half of the {} that the host memory limit leaves",
                                  format_bytes(bytes), format_bytes(resources.host_memory()->available())),
                      2 * bytes);
  }
  auto packed = std::make_shared<PackedBase>(kind, choose_centre(kind, base), base.rows(), resources);
  ProgressMeter meter("prepare", base.rows(), resources);
  packed->pack(base, options.check_finite, options.first_row, 1, meter, resources);
  meter.finish();
  return packed;
}

}  // namespace kith
