// The rows that may still be among the k nearest of one query, with bounds for their keys.
//
// A candidate has a lower and an upper bound for its canonical key. The k-th smallest upper bound is a threshold: a row
// whose lower bound is above it cannot be among the k nearest. Rows that pass the threshold are pushed; a full list is
// shrunk, which lowers the threshold. Where the bounds overlap too much for that to help (many equal or nearly equal
// rows), the candidates' canonical keys are computed and only the k smallest stay, so the list is always large enough.
//
// In exact mode the keys themselves are pushed and nothing is recomputed. Since rows come in ascending order, a row
// whose key equals the k-th smallest loses the tie: many equal keys cost nothing.
//
// Memory: 12 bytes per candidate, capacity_for(k) of them, provided by the owner. Time: a push is a few stores;
// shrinking is linear and happens at most once per k / 8 + 16 pushes.
#pragma once

#include "core/ordered_key.hpp"
#include "kernels/distance/error_bound.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <utility>

namespace kith {

// Candidate rows have 31 bits; the highest bit means that both bounds are the canonical key.
inline constexpr uint32_t kExactFlag = 0x80000000u;

// keys[i] = canonical key of rows[i]. If candidates are places, it replaces them by the rows at these places.
using RowScorer = std::function<void(uint32_t* rows, int64_t count, float* keys)>;

// What one thread needs besides its lists, to shrink and finish them.
struct CandidateScratch {
  float* keys = nullptr;
  uint32_t* rows = nullptr;
  uint64_t* neighbors = nullptr;

  static constexpr int64_t bytes_for(int64_t k);
  CandidateScratch() = default;
  // `memory` has bytes_for(k) bytes, aligned for uint64_t.
  CandidateScratch(std::byte* memory, int64_t k);
};

class CandidateList {
 public:
  static constexpr int64_t kBytesPerCandidate = 2 * sizeof(float) + sizeof(uint32_t);
  // The most candidates pushed at once.
  static constexpr int64_t kLargestGroup = 64;
  static constexpr uint32_t kNoRow = kExactFlag;
  static constexpr int64_t capacity_for(int64_t k) { return k + k / 2 + 24 + kLargestGroup; }

  // Bytes of a list and its candidates.
  static constexpr int64_t bytes_for(int64_t k);

  CandidateList() = default;
  // `memory` has kBytesPerCandidate * capacity_for(k) bytes, aligned for float.
  CandidateList(std::byte* memory, int64_t k);

  // What is pushed, and whether a row with a key equal to the threshold qualifies.
  enum class Keys : uint8_t {
    bounded,           // bounds for the key
    exact,             // the key itself
    exact_after_ties,  // ... and the threshold comes from earlier rows, so that an equal key has lost
  };

  // Empties the list. Rows with keys above `threshold` do not matter.
  void reset(float threshold, Keys keys = Keys::bounded) {
    count_ = 0;
    threshold_ = threshold;
    exact_ = keys != Keys::bounded;
    own_threshold_ = keys == Keys::exact_after_ties ? threshold : std::numeric_limits<float>::infinity();
    kth_row_ = kNoRow;
  }

  float threshold() const { return threshold_; }
  // The largest key with which a later row matters.
  float limit() const {
    return exact_ ? std::min(threshold_, std::nextafter(own_threshold_, -std::numeric_limits<float>::infinity()))
                  : threshold_;
  }
  // The same for a row with a known key: a tie loses against a threshold from earlier rows. Infinite if every key
  // qualifies, NaN included.
  float exact_limit() const {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    return own_threshold_ < infinity ? std::min(threshold_, std::nextafter(own_threshold_, -infinity)) : threshold_;
  }
  // Lowers the threshold to that of another list of the same query.
  void share_threshold(float threshold) { threshold_ = std::min(threshold_, threshold); }
  // The same, and drops the candidates that it excludes.
  void lower_to(float threshold) {
    share_threshold(threshold);
    drop_above_threshold();
  }
  // The k-th row when keys were last computed, or kNoRow. A later row that equals it loses the tie.
  uint32_t kth_row() const { return kth_row_; }
  int64_t size() const { return count_; }
  const float* lower() const { return lower_; }
  const float* upper() const { return upper_; }
  const uint32_t* rows() const { return rows_; }

  bool has_room() const { return count_ <= capacity_ - kLargestGroup; }

  // The list must have room.
  void push(float lower, float upper, uint32_t row) {
    lower_[count_] = lower;
    upper_[count_] = upper;
    rows_[count_] = row;
    ++count_;
  }

  // The same if it qualifies; branchless, since that is unpredictable.
  void push_if(bool counts, float lower, float upper, uint32_t row) {
    lower_[count_] = lower;
    upper_[count_] = upper;
    rows_[count_] = row;
    count_ += counts;
  }

  // In exact mode. The list must have room.
  void push_exact(float key, uint32_t row) { push(key, key, row | kExactFlag); }

  // What the values of a group mean: value + offset, or its root, times `unit`, a power of two, is a key; the sum is
  // within the row's bound and the share `relative` of it.
  struct GroupKeys {
    float offset = 0;
    const float* bounds = nullptr;  // one per row
    float relative = 0;
    bool root = false;
    float unit = 1;
  };

  // Pushes those of some consecutive rows, at most kLargestGroup, whose bits are set in `places`. The list must have
  // room.
  void push_group(const float* values, uint64_t places, const GroupKeys& keys, uint32_t first_row) {
    for (; places != 0; places &= places - 1) {
      const int i = std::countr_zero(places);
      const float key = values[i] + keys.offset;
      const float error = keys.bounds[i] + keys.relative * key;
      const float lower = key - error;  // NaN stays NaN and bounds nothing
      const float upper = key + error;
      push((keys.root ? root_below(lower) : lower) * keys.unit, (keys.root ? root_above(upper) : upper) * keys.unit,
           first_row + static_cast<uint32_t>(i));
    }
  }

  // Pushes those of `count` consecutive rows whose keys are not above the limit. The list must have room.
  void push_exact_group(const float* keys, int64_t count, float limit, uint32_t first_row) {
    const bool all = limit == std::numeric_limits<float>::infinity();
    for (int64_t i = 0; i < count; ++i) {
      lower_[count_] = upper_[count_] = keys[i];
      rows_[count_] = (first_row + static_cast<uint32_t>(i)) | kExactFlag;
      count_ += all || keys[i] <= limit;
    }
  }

  // Drops those unwanted rows that were pushed since the list had `first` candidates.
  template <typename Wanted>
  void keep_since(int64_t first, const Wanted& wanted) {
    int64_t end = first;
    for (int64_t i = first; i < count_; ++i) {
      lower_[end] = lower_[i];
      upper_[end] = upper_[i];
      rows_[end] = rows_[i];
      end += wanted(rows_[i] & ~kExactFlag);
    }
    count_ = end;
  }
  // Drops candidates that the k-th smallest upper bound excludes, before any key is computed.
  void tighten(const CandidateScratch& scratch) { lower_threshold(scratch.keys); }
  // Empties the list, keeping its threshold: all candidates go to scratch.neighbors, packed with their canonical keys.
  // Returns how many.
  int64_t drain(uint32_t first_row, const CandidateScratch& scratch, const RowScorer& score) {
    collect(first_row, scratch, score);
    return std::exchange(count_, 0);
  }
  // The same for candidates with keys up to `most`.
  int64_t drain_within(uint32_t first_row, float most, const CandidateScratch& scratch, const RowScorer& score) {
    const int64_t count = drain(first_row, scratch, score);
    const uint32_t last = ordered_key(most);
    int64_t within = 0;
    for (int64_t i = 0; i < count; ++i) {
      const uint64_t neighbor = scratch.neighbors[i];
      scratch.neighbors[within] = neighbor;
      within += ordered_of(neighbor) <= last;  // NaN sorts after every key
    }
    return within;
  }

  // Makes room for at least one group.
  void make_room(const CandidateScratch& scratch, const RowScorer& score);

  // Puts the k nearest of this list and of `best` (k packed neighbours, sorted, padded) into `best`; rows count from
  // first_row there. The list is used up.
  void finish(uint64_t* best, uint32_t first_row, const CandidateScratch& scratch, const RowScorer& score);

 private:
  // To the k-th smallest upper bound, and to a value somewhat above it that a sample suggests, at a tenth of the cost.
  // Both drop what is then excluded.
  void lower_threshold(float* scratch);
  void set_threshold(float key);
  void guess_threshold();
  void drop_above_threshold();
  // Computes the canonical keys of all candidates, into scratch.neighbors.
  void collect(uint32_t first_row, const CandidateScratch& scratch, const RowScorer& score) const;
  void keep_k_best(const CandidateScratch& scratch, const RowScorer& score);

  int64_t k_ = 0;
  int64_t capacity_ = 0;
  int64_t count_ = 0;
  bool exact_ = false;
  float threshold_ = std::numeric_limits<float>::infinity();
  float own_threshold_ = std::numeric_limits<float>::infinity();  // from the list itself and earlier rows
  uint32_t kth_row_ = kNoRow;
  float* lower_ = nullptr;
  float* upper_ = nullptr;
  uint32_t* rows_ = nullptr;
};

constexpr int64_t CandidateList::bytes_for(int64_t k) {
  return static_cast<int64_t>(sizeof(CandidateList)) + capacity_for(k) * kBytesPerCandidate;
}

constexpr int64_t CandidateScratch::bytes_for(int64_t k) {
  const int64_t capacity = CandidateList::capacity_for(k);
  return (capacity + k) * static_cast<int64_t>(sizeof(uint64_t)) +
         capacity * static_cast<int64_t>(sizeof(float) + sizeof(uint32_t));
}

// Consumes candidates: a k-NN search keeps the k best of a list, a range search extracts all.
class CandidateUser {
 public:
  virtual ~CandidateUser() = default;
  // Rows with larger keys do not matter.
  virtual float threshold(int64_t query) const = 0;
  // Whether rows with a key equal to the threshold qualify: not if it is the k-th key of earlier rows.
  virtual bool ties_may_count() const = 0;
  // Whether keys are passed on directly (take_keys), without a list that lowers the threshold.
  virtual bool takes_keys() const { return false; }
  // Called, on any thread, when a list is full: leaves room for a group. Its rows count from first_row.
  virtual void make_room(CandidateList* list, int64_t query, uint32_t first_row, int slot, const RowScorer& score) = 0;
  // The keys of `count` rows from first_row on.
  virtual void take_keys(int64_t /*query*/, uint32_t /*first_row*/, const float* /*keys*/, int64_t /*count*/,
                         int /*slot*/) {}
  // The rows are scanned: the list is used up.
  virtual void finish(CandidateList* list, int64_t query, uint32_t first_row, int slot, const RowScorer& score) = 0;
};

// Puts the k smallest of `best` (k packed neighbours, sorted, padded) and of `fresh` (in any order) into `best`.
// `scratch` holds k.
void merge_neighbors(uint64_t* best, int64_t k, uint64_t* fresh, int64_t count, uint64_t* scratch);

}  // namespace kith
