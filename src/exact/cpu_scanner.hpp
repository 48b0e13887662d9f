// Finds candidates on the CPU: fast f32 arithmetic scans the rows, and whatever it cannot exclude is appended to lists
// that a CandidateUser processes.
//
// Many queries: packed panels are multiplied, or compared, tile by tile, fused with the comparison against each query's
// threshold, so that distances never leave the registers (block_scan). Few queries: one pass over the rows in place, or
// over those that a prepared base's screen does not exclude (tile_scan), at the speed of memory. Either way every row
// outside the lists is excluded by the error bounds.
//
// Work is divided into tasks of a block of queries and a range of rows. The assignment to threads, the split of the
// rows and the thresholds at the time decide only which rows become candidates, never the result.
#pragma once

#include <kith/host_buffer.hpp>

#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "core/reused_memory.hpp"
#include "exact/knn_plan_cpu.hpp"
#include "exact/prepared_base.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "kernels/panels/packed_queries.hpp"
#include "kernels/panels/packed_rows.hpp"
#include "kernels/select/candidate_list.hpp"
#include "rows/kept_rows.hpp"

#include <atomic>
#include <cstdint>
#include <cstring>

namespace kith {

class CpuScanner {
 public:
  // `kept`: the bits of a filter that is applied to the candidates, or null.
  CpuScanner(const SearchTask& task, const KnnCpuPlan& plan, const uint64_t* kept, const Resources& resources);

  // Checks and loads a batch of queries.
  void load(const MatrixView& queries, int64_t first_query);
  int64_t queries() const { return query_count_; }

  // Scans the rows for all queries of the batch and hands the lists to `user`.
  void scan(const MatrixView& base, int64_t first_row, const PreparedBase* ready, ProgressMeter& meter,
            CandidateUser& user);

  // What the parts of a scan share.
  const KnnCpuPlan& plan() const { return plan_; }
  KeyKind kind() const { return kind_; }
  const Resources& resources() const { return resources_; }
  ProgressMeter& meter() const { return *meter_; }
  const MatrixView& base() const { return base_; }
  int64_t first_row() const { return first_row_; }  // of the base, in the caller's numbers
  bool keeps_all() const { return kept_ == nullptr; }
  bool keeps_row(int64_t row) const { return keeps_all() || keeps(kept_, first_row_ + row); }
  CandidateUser& user() const { return *user_; }

  // Queries, as f32 and packed.
  const float* query(int64_t i) const { return query_rows_.data() + i * task_.shape.cols; }
  double squared_norm(int64_t i) const { return norms_[i].squared; }
  CanonicalQuery canonical(int64_t i) const { return {query(i), norms_[i].inverse}; }
  const PackedQueries& packed() const { return packed_; }

  CandidateList& list(int64_t query, int64_t split) const {
    return list_memory_.as<CandidateList>()[query * plan_.row_splits + split];
  }
  // Shares the lowest threshold among the lists of a query; this changes the number of candidates, never the result.
  void exchange_threshold(int64_t query, CandidateList* list) {
    std::atomic<float>& shared = thresholds_[static_cast<size_t>(query)];
    float lowest = shared.load(std::memory_order_relaxed);
    while (list->threshold() < lowest &&
           !shared.compare_exchange_weak(lowest, list->threshold(), std::memory_order_relaxed)) {
    }
    list->share_threshold(lowest);
  }
  // The scratch memory with which a thread shrinks and finishes lists.
  const CandidateScratch& scratch(int slot) const { return scratch_[static_cast<size_t>(slot)]; }
  // Returns how many keys were computed for it.
  int64_t make_room(int64_t query, int64_t split, int slot) const;

 private:
  struct Norms {
    double squared;
    double inverse;
  };

  // A RowScorer. `scored`, where it is given, counts the keys.
  auto scorer(int64_t query, int64_t* scored = nullptr) const {
    return [this, query, scored](const uint32_t* rows, int64_t count, float* keys) {
      canonical_keys_cpu(kind_, canonical(query), base_, rows, count, keys);
      if (scored != nullptr) *scored += count;
    };
  }
  // For few queries: one pass over the rows in place or, with
  // a screen, over those that it does not rule out.
  void scan_directly(const PackedRows* screen, bool check_finite);
  // For many queries: a matrix product over packed panels. Uses `ready` if it was packed for the instruction set in
  // use; otherwise packs and checks plan.panel_rows rows at a time.
  void scan_products(const PackedRows* ready, bool check_finite);
  void scan_packed(const PackedRows& rows, int64_t first_row);
  // The same for an index that keeps rows without panels. Each thread packs the f32 panels that it needs (PanelRing).
  // bf16 tiles, which cost as much to pack as some hundred queries to multiply, are packed by all threads together,
  // plan.panel_rows rows at a time, once for all queries of the batch.
  void scan_made_panels(const PackedRows& rows);
  void scan_made_tiles(const PackedRows& known);

  const SearchTask task_;
  const KnnCpuPlan plan_;
  const KeyKind kind_;
  const uint64_t* const kept_;
  const Resources resources_;
  int64_t query_count_ = 0;
  HostArray<float> query_rows_;
  HostArray<Norms> norms_;
  PackedQueries packed_;
  HostBuffer list_memory_;                      // queries x row_splits, then their candidates
  HostBuffer scratch_memory_;
  ReusedVector<CandidateScratch> scratch_;       // one for each thread
  ReusedVector<std::atomic<float>> thresholds_;  // the lowest of each query's lists
  // State of the scan in progress.
  MatrixView base_;
  int64_t first_row_ = 0;
  ProgressMeter* meter_ = nullptr;
  CandidateUser* user_ = nullptr;
};

// Detects rows identical to the current k-th neighbour. They tie and lose by row number; their keys are not computed.
class TiesWithKth {
 public:
  TiesWithKth(const MatrixView& base, const CandidateList& list)
      : rows_(base.row(0)),
        stride_(base.row_stride() * size_of(base.dtype())),
        bytes_(base.cols() * size_of(base.dtype())) {
    if (list.kth_row() != CandidateList::kNoRow) kth_ = base.row(list.kth_row());
  }
  // Whether there can be any.
  explicit operator bool() const { return kth_ != nullptr; }
  bool operator()(int64_t row) const {
    const std::byte* const other = rows_ + row * stride_;
    if (bytes_ < kWord) return std::memcmp(kth_, other, static_cast<size_t>(bytes_)) == 0;
    for (int64_t at = 0; at < bytes_ - kWord; at += kWord) {
      if (word(kth_ + at) != word(other + at)) return false;
    }
    return word(kth_ + bytes_ - kWord) == word(other + bytes_ - kWord);
  }

 private:
  static constexpr int64_t kWord = sizeof(uint64_t);
  static uint64_t word(const std::byte* bytes) {
    uint64_t value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }

  const std::byte* rows_;
  int64_t stride_;
  int64_t bytes_;
  const std::byte* kth_ = nullptr;
};

}  // namespace kith
