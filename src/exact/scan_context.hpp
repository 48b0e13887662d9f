// What the scans of the CPU search share: the rows, the queries and their candidate lists.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/parallel_for.hpp"
#include "exact/knn_plan_cpu.hpp"
#include "exact/query_set.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "kernels/select/candidate_list.hpp"
#include "rows/kept_rows.hpp"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <vector>

namespace kith {

// What is done with candidates: a k-NN search keeps the k best of a list, a range search takes them all out.
class CandidateUser {
 public:
  virtual ~CandidateUser() = default;
  // Rows with larger keys are known not to matter.
  virtual float threshold(int64_t query) const = 0;
  // Whether rows with a key equal to the threshold count. They do not where it is the k-th key of earlier rows.
  virtual bool ties_may_count() const = 0;
  // Whether keys are taken as they come (take_keys), and no list lowers the threshold.
  virtual bool takes_keys() const { return false; }
  // Called, on any thread, when a list is full: leaves room for a group. Its rows count from first_row.
  virtual void make_room(CandidateList* list, int64_t query, uint32_t first_row, int slot, const RowScorer& score) = 0;
  // The keys of `count` rows from first_row on.
  virtual void take_keys(int64_t /*query*/, uint32_t /*first_row*/, const float* /*keys*/, int64_t /*count*/,
                         int /*slot*/) {}
  // The rows are scanned: the list is used up.
  virtual void finish(CandidateList* list, int64_t query, uint32_t first_row, int slot, const RowScorer& score) = 0;
};

struct ScanContext {
  const MatrixView& base;
  int64_t first_row;  // of the base, in the caller's numbers
  QuerySet& queries;
  KeyKind kind;
  CandidateList* lists;  // queries x row_splits
  CandidateUser& user;
  const uint64_t* kept;  // bits in the caller's row numbers, or null where all rows count
  const KnnCpuPlan& plan;
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
  bool keeps_row(int64_t row) const { return kept == nullptr || keeps(kept, first_row + row); }

  // Returns how many keys were computed for it.
  int64_t make_room(int64_t query, int64_t split, int slot) const {
    int64_t scored = 0;
    user.make_room(&list(query, split), query, static_cast<uint32_t>(first_row), slot, scorer(query, &scored));
    return scored;
  }
  // `scored`, where it is given, counts the keys.
  RowScorer scorer(int64_t query, int64_t* scored = nullptr) const {
    return [this, query, scored](const uint32_t* rows, int64_t count, float* keys) {
      canonical_keys_cpu(kind, queries.canonical(query), base, rows, count, keys);
      if (scored != nullptr) *scored += count;
    };
  }
};

// Which rows to come are the k-th of a list once more, and have lost: of many equal rows this spares the keys of most.
class KthAgain {
 public:
  KthAgain(const MatrixView& base, const CandidateList& list)
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
