#include "exact/cpu_scanner.hpp"

#include "core/host_array.hpp"
#include "exact/direct_scan.hpp"
#include "exact/prepared_base_cpu.hpp"
#include "exact/product_scan.hpp"
#include "rows/finite_check.hpp"

#include <new>

namespace kith {

CpuScanner::CpuScanner(const SearchTask& task, const KnnCpuPlan& plan, const uint64_t* kept, const Resources& resources)
    : task_(task),
      plan_(plan),
      kind_(key_kind(task.shape.metric)),
      kept_(kept),
      resources_(resources),
      queries_(kind_, plan.query_batch, task.shape.cols, plan.packed_queries(), resources),
      list_memory_(list_count() * CandidateList::bytes_for(plan.list_length), "the candidate lists", resources),
      thresholds_(static_cast<size_t>(plan.query_batch)) {
  // The lists first, then their candidates.
  std::byte* const candidates = list_memory_.data() + array_bytes<CandidateList>(list_count());
  const int64_t bytes = CandidateList::capacity_for(plan.list_length) * CandidateList::kBytesPerCandidate;
  for (int64_t i = 0; i < list_count(); ++i) new (lists() + i) CandidateList(candidates + i * bytes, plan.list_length);
}

void CpuScanner::load(const MatrixView& queries, int64_t first_query) {
  if (kind_ == KeyKind::chi_square) refuse_negative("query", queries, {first_query}, resources_.with_progress({}));
  queries_.load(queries, task_.wish.check_finite, first_query);
}

void CpuScanner::scan(const MatrixView& base, int64_t first_row, const PreparedBase* ready, ProgressMeter& meter,
                      CandidateUser& user) {
  const bool check = task_.wish.check_finite && !task_.base_checked();
  if (kind_ == KeyKind::chi_square && !task_.base_checked()) {
    refuse_negative("base", base, {first_row, nullptr, kept_}, resources_.with_progress({}));
  }
  const ScanContext context{base,  first_row, queries_, kind_,      lists(),    user,
                            kept_, plan_,     meter,    resources_, thresholds_};
  const bool exact = plan_.engine == CpuEngine::panels && holds_bytes(plan_.format);
  const CandidateList::Keys keys = !exact                  ? CandidateList::Keys::bounded
                                   : user.ties_may_count() ? CandidateList::Keys::exact
                                                           : CandidateList::Keys::exact_after_ties;
  for (int64_t query = 0; query < queries_.size(); ++query) {
    const float threshold = user.threshold(query);
    thresholds_[static_cast<size_t>(query)] = threshold;
    for (int64_t split = 0; split < plan_.row_splits; ++split) context.list(query, split).reset(threshold, keys);
  }
  const auto* const prepared = dynamic_cast<const PreparedBaseCpu*>(ready);
  const PackedRows* const packed = prepared == nullptr ? nullptr : &prepared->packed();
  if (plan_.engine == CpuEngine::direct) {
    direct_scan(context, packed, check, first_row);
  } else {
    product_scan(context, packed, check, first_row);
  }
  parallel_for(queries_.size(), meter, resources_, [&](int64_t query, int slot) {
    for (int64_t split = 0; split < plan_.row_splits; ++split) {
      context.exchange_threshold(query, &context.list(query, split));
      user.finish(&context.list(query, split), query, static_cast<uint32_t>(first_row), slot, context.scorer(query));
    }
  });
}

}  // namespace kith
