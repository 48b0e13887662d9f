// What the two scans of the CPU search share: the rows, the queries and their candidate lists.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/parallel_for.hpp"
#include "exact/knn_plan.hpp"
#include "exact/query_set.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "kernels/select/candidate_list.hpp"

#include <atomic>
#include <cstdint>
#include <vector>

namespace kith {

struct ScanContext {
  const MatrixView& base;
  QuerySet& queries;
  KeyKind kind;
  CandidateList* lists;                          // queries x row_splits
  const std::vector<CandidateScratch>& scratch;  // one for each thread
  const KnnPlan& plan;
  ProgressMeter& meter;
  const Resources& resources;

  std::vector<std::atomic<float>>& thresholds;  // the lowest of each query's lists

  // Lists of one query tell each other how far they are; this changes how many candidates there are, never the result.
  void exchange_threshold(int64_t query, CandidateList* list) const {
    std::atomic<float>& shared = thresholds[static_cast<size_t>(query)];
    float lowest = shared.load(std::memory_order_relaxed);
    while (list->threshold() < lowest &&
           !shared.compare_exchange_weak(lowest, list->threshold(), std::memory_order_relaxed)) {
    }
    list->share_threshold(lowest);
  }

  CandidateList& list(int64_t query, int64_t split) const { return lists[query * plan.row_splits + split]; }
  RowScorer scorer(int64_t query) const {
    return [this, query](const uint32_t* rows, int64_t count, float* keys) {
      canonical_keys_cpu(kind, queries.canonical(query), base, rows, count, keys);
    };
  }
};

}  // namespace kith
