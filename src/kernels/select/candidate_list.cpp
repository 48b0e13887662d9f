#include "kernels/select/candidate_list.hpp"

#include "core/ordered_key.hpp"
#include "core/scratch_layout.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kith {

CandidateScratch::CandidateScratch(std::byte* memory, int64_t k) {
  const int64_t capacity = CandidateList::capacity_for(k);
  ScratchLayout layout;
  neighbors = layout.take<uint64_t>(capacity + k).in(memory);
  keys = layout.take<float>(capacity).in(memory);
  rows = layout.take<uint32_t>(capacity).in(memory);
}

CandidateList::CandidateList(std::byte* memory, int64_t k) : k_(k), capacity_(capacity_for(k)) {
  ScratchLayout layout;
  lower_ = layout.take<float>(capacity_).in(memory);
  upper_ = layout.take<float>(capacity_).in(memory);
  rows_ = layout.take<uint32_t>(capacity_).in(memory);
}

void CandidateList::make_room(const CandidateScratch& scratch, const RowScorer& score) {
  // Leaves enough free room that the next shrink is not due at once.
  const int64_t enough = capacity_ - kLargestGroup - k_ / 8 - 16;
  guess_threshold();
  if (count_ > enough) lower_threshold(scratch.keys);
  if (count_ > enough) keep_k_best(scratch, score);
}

void CandidateList::guess_threshold() {
  constexpr int64_t kSamples = 16;
  if (count_ < std::max(k_, kSamples)) return;
  float given[kSamples];
  for (int64_t i = 0; i < kSamples; ++i) {
    const float upper = upper_[i * count_ / kSamples];
    given[i] = std::isnan(upper) ? std::numeric_limits<float>::infinity() : upper;
  }
  // Places each entry by its rank, counted with vectors: much faster than sorting.
  int32_t places[kSamples] = {};
  for (int32_t j = 0; j < kSamples; ++j) {
    for (int32_t i = 0; i < kSamples; ++i) places[i] += given[j] < given[i] || (given[j] == given[i] && j < i);
  }
  float samples[kSamples];
  for (int64_t i = 0; i < kSamples; ++i) samples[places[i]] = given[i];
  for (int64_t i = kSamples * k_ / count_ + 1; i < kSamples; ++i) {
    int64_t below = 0;
    for (int64_t c = 0; c < count_; ++c) below += upper_[c] <= samples[i];
    if (below < k_) continue;
    set_threshold(samples[i]);
    return drop_above_threshold();
  }
}

void CandidateList::lower_threshold(float* scratch) {
  if (count_ < k_) return;
  const float nothing = std::numeric_limits<float>::infinity();  // the upper bound of a NaN
  for (int64_t i = 0; i < count_; ++i) scratch[i] = std::isnan(upper_[i]) ? nothing : upper_[i];
  std::nth_element(scratch, scratch + (k_ - 1), scratch + count_);
  set_threshold(scratch[k_ - 1]);
  drop_above_threshold();
}

void CandidateList::drop_above_threshold() {
  int64_t kept = 0;
  for (int64_t i = 0; i < count_; ++i) {
    const bool keep = !(lower_[i] > threshold_);  // NaN stays
    lower_[kept] = lower_[i];
    upper_[kept] = upper_[i];
    rows_[kept] = rows_[i];
    kept += keep;
  }
  count_ = kept;
}

void CandidateList::collect(uint32_t first_row, const CandidateScratch& scratch, const RowScorer& score) const {
  int64_t unknown = 0;
  for (int64_t i = 0; i < count_; ++i) {
    scratch.rows[unknown] = rows_[i];
    unknown += (rows_[i] & kExactFlag) == 0;
  }
  if (unknown > 0) score(scratch.rows, unknown, scratch.keys);
  // Keeps the order of the list, so ascending rows stay ascending.
  int64_t next = 0;
  for (int64_t i = 0; i < count_; ++i) {
    const bool known = (rows_[i] & kExactFlag) != 0;
    const float key = known ? lower_[i] : scratch.keys[next];
    const uint32_t row = known ? rows_[i] & ~kExactFlag : scratch.rows[next++];
    scratch.neighbors[i] = pack_neighbor(ordered_key(key), first_row + row);
  }
}

void CandidateList::keep_k_best(const CandidateScratch& scratch, const RowScorer& score) {
  collect(0, scratch, score);
  uint64_t* const neighbors = scratch.neighbors;
  std::nth_element(neighbors, neighbors + (k_ - 1), neighbors + count_);
  for (int64_t i = 0; i < k_; ++i) {
    const float key = key_of_ordered(ordered_of(neighbors[i]));
    lower_[i] = upper_[i] = key;
    rows_[i] = row_of(neighbors[i]) | kExactFlag;
  }
  count_ = k_;
  kth_row_ = row_of(neighbors[k_ - 1]);
  set_threshold(upper_[k_ - 1]);
}

void CandidateList::set_threshold(float key) {
  if (key < threshold_) threshold_ = key;  // NaN excludes nothing
  if (key < own_threshold_) own_threshold_ = key;
}

void CandidateList::finish(uint64_t* best, uint32_t first_row, const CandidateScratch& scratch,
                           const RowScorer& score) {
  if (best[k_ - 1] != kPadding) {
    const float kth = key_of_ordered(ordered_of(best[k_ - 1]));
    if (kth < threshold_) threshold_ = kth;
  }
  drop_above_threshold();  // before any key is computed
  lower_threshold(scratch.keys);
  collect(first_row, scratch, score);
  merge_neighbors(best, k_, scratch.neighbors, count_, scratch.neighbors + capacity_);
  count_ = 0;
}

void merge_neighbors(uint64_t* best, int64_t k, uint64_t* fresh, int64_t count, uint64_t* scratch) {
  if (count > k) {
    std::nth_element(fresh, fresh + (k - 1), fresh + count);
    count = k;
  }
  std::sort(fresh, fresh + count);
  const uint64_t* a = best;
  const uint64_t* b = fresh;
  for (int64_t i = 0; i < k; ++i) {
    scratch[i] = b < fresh + count && *b < *a ? *b++ : *a++;
  }
  std::copy(scratch, scratch + k, best);
}

}  // namespace kith
