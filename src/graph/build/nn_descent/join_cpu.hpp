// The join of one row's samples on one thread of a CPU: blocked products rule pairs out, canonical keys decide among
// those that may be offered.
#pragma once

#include "graph/build/nn_descent/descent_steps.hpp"
#include "graph/lists/pairs/pair_keys.hpp"
#include "graph/lists/pairs/pair_scan.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace kith {

// Where offers wait: slots for every row, the smallest packed neighbour of each.
class Inbox {
 public:
  Inbox(int64_t rows, int64_t slots, const Resources& resources);

  int64_t slots() const { return slots_; }
  uint64_t* of(int64_t row) const { return words_.data() + row * slots_; }
  // The largest key that an offer may have to change a slot.
  uint32_t threshold(int64_t row, int64_t slot) const {
    return ordered_of(std::atomic_ref<uint64_t>(of(row)[slot]).load(std::memory_order_relaxed));
  }
  // On any thread.
  void offer(int64_t row, int64_t slot, uint64_t neighbor) const;

 private:
  int64_t slots_;
  HostArray<uint64_t> words_;
};

// The samples of one row.
struct JoinSets {
  std::vector<uint32_t> fresh;  // NEW
  std::vector<uint32_t> old;
};

class JoinWorker final : private PairHits {
 public:
  JoinWorker(const PairRows& rows, const DescentRules& rules, const WorkingLists& lists, const Inbox& inbox,
             const Resources& resources);

  // Returns the pairs compared.
  int64_t join(const JoinSets& sets, uint64_t salt);

 private:
  struct Candidate {
    int32_t query;  // places
    int32_t row;
    float lower;
    float upper;
    bool for_query;
    bool for_row;
  };
  // The nearest so far of one sample in one set.
  struct Nearest {
    float upper;         // no candidate above it can be the nearest
    int32_t candidates;  // left when all are compared, that are not in vain
    uint64_t neighbor;   // once keys are known
  };

  void on_pair(const PairHit& hit) override;
  void compare(const std::vector<uint32_t>& queries, const std::vector<uint32_t>& rows, bool both_sides);
  void drop_what_lost();
  void settle();
  void offer(uint32_t row, uint64_t neighbor) const;
  // Whether an offer, given bounds for its key, would be in vain.
  bool in_vain(uint32_t row, uint32_t other, float lower, float upper) const;
  // Whether `row` has `other` in its list, given bounds for their key.
  bool knows(uint32_t row, uint32_t other, float lower, float upper) const;

  const DescentRules rules_;
  const WorkingLists& lists_;
  const Inbox& inbox_;
  std::unique_ptr<PairScan> scan_;
  PairKeys keys_;
  uint64_t salt_ = 0;
  const uint32_t* queries_ = nullptr;
  const uint32_t* rows_ = nullptr;
  std::vector<Nearest> of_query_;
  std::vector<Nearest> of_row_;
  std::vector<Candidate> candidates_;
  std::vector<uint32_t> others_;
  std::vector<float> found_;
};

}  // namespace kith
