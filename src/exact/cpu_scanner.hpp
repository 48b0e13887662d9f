// Finds candidates on the CPU: fast f32 arithmetic goes over the rows, and whatever it cannot exclude is put on lists
// that a CandidateUser makes something of.
//
// Many queries: packed panels are multiplied, or compared, tile by tile, fused with the comparison against each query's
// threshold, so that distances never leave the registers (product_scan). Few queries: one pass over the rows as they
// lie, or over those that a prepared base's screen leaves (direct_scan), at the speed of memory. Either way every row
// outside the lists is excluded by the error bounds.
//
// Work is cut into tasks of a block of queries and a range of rows. Which thread does which, how the rows are split and
// what the thresholds were at the time changes only which rows become candidates, never the result.
#pragma once

#include <kith/host_buffer.hpp>

#include "exact/knn_backend.hpp"
#include "exact/query_set.hpp"
#include "exact/scan_context.hpp"
#include "kernels/select/candidate_list.hpp"

#include <atomic>
#include <cstdint>
#include <vector>

namespace kith {

class CpuScanner {
 public:
  // `kept`: the bits of a filter that is applied to the candidates, or null.
  CpuScanner(const SearchTask& task, const KnnCpuPlan& plan, const uint64_t* kept, const Resources& resources);

  // Takes a batch of queries in, after checking them.
  void load(const MatrixView& queries, int64_t first_query);
  int64_t queries() const { return queries_.size(); }

  // Scans the rows for all queries of the batch and hands the lists to `user`.
  void scan(const MatrixView& base, int64_t first_row, const PreparedBase* ready, ProgressMeter& meter,
            CandidateUser& user);

 private:
  int64_t list_count() const { return plan_.query_batch * plan_.row_splits; }
  CandidateList* lists() const { return list_memory_.as<CandidateList>(); }

  const SearchTask task_;
  const KnnCpuPlan plan_;
  const KeyKind kind_;
  const uint64_t* const kept_;
  const Resources resources_;
  QuerySet queries_;
  HostBuffer list_memory_;
  std::vector<std::atomic<float>> thresholds_;
};

}  // namespace kith
