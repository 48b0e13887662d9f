// The core of selection: one block keeps the k best neighbours of one query while it scans tiles of keys.
//
// The list has neighbours in row order, and a tile's rows come after all rows of the list. List and tile together are
// one long row of keys. The k-th smallest key is found by radix, 8 bits at a time; a stable compaction then keeps all
// smaller keys and, from the front, as many equal ones as fit: ties go to the smaller row. Once the list is full, only
// rows strictly nearer than its worst are considered.
//
// Compaction is in place: an entry moves to the front or stays, and a stretch is read completely before it is written.
//
// `Block` provides thread(), threads(), sync(), any(), histogram(), count() and rank(); tests use one made of
// threads.
#pragma once

#include "core/ordered_key.hpp"
#include "cuda/device_core.hpp"

#include <cstdint>

namespace kith {

inline constexpr int kRadixBits = 8;
inline constexpr int kRadixBins = 1 << kRadixBits;

struct SelectTask {
  uint64_t* list;        // k places; the first `have` hold neighbours in row order
  uint32_t* bound;       // the largest key of a full list
  const uint32_t* keys;  // of rows first_row, first_row + 1, ...
  int64_t count;         // number of keys
  int64_t have;
  int64_t k;
  uint32_t first_row;
  const uint32_t* numbers = nullptr;  // of the rows, ascending, where they are not first_row, first_row + 1, ...
};

// The number of set flags in earlier threads, and in the whole block.
struct FlagRanks {
  int less_before;
  int equal_before;
  int less_total;
  int equal_total;
};

// The bin that holds the rank-th smallest (from 1); rank becomes its rank inside the bin.
KITH_DEVICE inline uint32_t find_bin(const uint32_t* histogram, int64_t& rank) {
  uint32_t bin = 0;
  while (bin < kRadixBins - 1 && rank > static_cast<int64_t>(histogram[bin])) rank -= histogram[bin++];
  return bin;
}

// `Task` is a SelectTask or a type with the same members; keys[i] must give an ordered key.
template <typename Block, typename Task = SelectTask>
class BlockSelector {
 public:
  KITH_DEVICE BlockSelector(Block& block, const Task& task)
      : block_(block), task_(task), full_(task.have == task.k), bound_(full_ ? *task.bound : 0) {}

  KITH_DEVICE void run() {
    if (task_.have + task_.count < task_.k) return append_all();
    if (full_ && !tile_has_candidate()) return;
    int64_t rank = task_.k;
    const uint32_t threshold = find_key(rank);
    compact(threshold, rank);
    if (block_.thread() == 0) *task_.bound = threshold;
  }

 private:
  // Position i of the list followed by the tile; false where it cannot be among the k best.
  KITH_DEVICE bool candidate(int64_t i, uint32_t& key) const {
    if (i < task_.have) {
      key = ordered_of(task_.list[i]);
      return true;
    }
    key = task_.keys[i - task_.have];
    return !full_ || key < bound_;
  }

  KITH_DEVICE uint32_t number(int64_t i) const {
    return task_.numbers == nullptr ? task_.first_row + static_cast<uint32_t>(i) : task_.numbers[i];
  }

  KITH_DEVICE void append_all() {
    for (int64_t i = block_.thread(); i < task_.count; i += block_.threads()) {
      task_.list[task_.have + i] = pack_neighbor(task_.keys[i], number(i));
    }
  }

  KITH_DEVICE bool tile_has_candidate() {
    bool found = false;
    for (int64_t i = block_.thread(); i < task_.count; i += block_.threads()) found = found || task_.keys[i] < bound_;
    return block_.any(found);
  }

  // The rank-th smallest key (from 1); rank becomes its rank among the keys that equal it.
  KITH_DEVICE uint32_t find_key(int64_t& rank) {
    uint32_t prefix = 0;
    uint32_t mask = 0;
    for (int shift = 32 - kRadixBits; shift >= 0; shift -= kRadixBits) {
      uint32_t* histogram = block_.histogram();
      for (int bin = block_.thread(); bin < kRadixBins; bin += block_.threads()) histogram[bin] = 0;
      block_.sync();
      for (int64_t i = block_.thread(); i < task_.have + task_.count; i += block_.threads()) {
        uint32_t key;
        if (candidate(i, key) && (key & mask) == prefix) block_.count(key >> shift & (kRadixBins - 1));
      }
      block_.sync();
      prefix |= find_bin(histogram, rank) << shift;
      mask |= static_cast<uint32_t>(kRadixBins - 1) << shift;
      block_.sync();  // all threads have read the bins
    }
    return prefix;
  }

  // Keeps entries below the threshold and the first `room` entries equal to it.
  KITH_DEVICE void compact(uint32_t threshold, int64_t room) {
    const int64_t total = task_.have + task_.count;
    int64_t less = 0;
    int64_t equal = 0;
    for (int64_t first = 0; first < total; first += block_.threads()) {
      const int64_t i = first + block_.thread();
      uint32_t key = 0;
      uint64_t neighbor = 0;
      const bool may_stay = i < total && candidate(i, key);
      if (may_stay) {
        neighbor = i < task_.have ? task_.list[i] : pack_neighbor(key, number(i - task_.have));
      }
      const bool is_less = may_stay && key < threshold;
      const bool is_equal = may_stay && key == threshold;
      const FlagRanks ranks = block_.rank(is_less, is_equal);  // synchronises: every entry of the stretch has been read
      const int64_t equal_before = equal + ranks.equal_before;
      if (is_less || (is_equal && equal_before < room)) {
        task_.list[less + ranks.less_before + (equal_before < room ? equal_before : room)] = neighbor;
      }
      less += ranks.less_total;
      equal += ranks.equal_total;
    }
  }

  Block& block_;
  const Task task_;
  const bool full_;
  const uint32_t bound_;
};

}  // namespace kith
