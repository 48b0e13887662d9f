// The samples of NN-Descent's rounds on the CPU, wherever lists are kept: which neighbours of a list are drawn, who
// stands for a row's reverse samples, and who meets in its join.
#pragma once

#include "core/ordered_key.hpp"
#include "graph/build/nn_descent/join_rules.hpp"
#include "graph/lists/working_lists.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace kith {

enum SampleKind : int64_t { kNewSample = 0, kOldSample = 1 };

// Those of one row.
struct JoinSets {
  std::vector<uint32_t> fresh;  // NEW
  std::vector<uint32_t> old;
};

// The first p of each kind in a row's list, NEW ones first, padded with kNobody; they become OLD.
inline void draw_samples(const DescentRules& rules, int64_t row, uint64_t* list, int64_t length, uint32_t* samples) {
  // In a merge OLD ones are of the row's own set: only they meet NEW ones across.
  const auto may_be_old = [&](uint32_t other) {
    return rules.boundary == 0 || (other < rules.boundary) == (row < rules.boundary);
  };
  int64_t counts[2] = {0, 0};
  std::fill_n(samples, 2 * rules.samples, kNobody);
  for (int64_t j = 0; j < length && list[j] != kPadding; ++j) {
    const SampleKind kind = is_old(list[j]) ? kOldSample : kNewSample;
    const uint32_t other = row_of(without_flag(list[j]));
    if (counts[kind] == rules.samples || (kind == kOldSample && !may_be_old(other))) continue;
    samples[kind * rules.samples + counts[kind]++] = other;
    list[j] |= kOldFlag;
  }
}

// Collects forward and reverse samples of a row, 2 p each, without duplicates; a NEW one is not OLD.
inline void collect_samples(const uint32_t* forward, const uint32_t* reverse, int64_t p, JoinSets& sets) {
  const auto gather = [&](SampleKind kind, std::vector<uint32_t>& out) {
    out.clear();
    for (const uint32_t* from : {forward + kind * p, reverse + kind * p}) {
      for (int64_t i = 0; i < p; ++i) {
        if (from[i] != kNobody) out.push_back(from[i]);
      }
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
  };
  gather(kNewSample, sets.fresh);
  if (sets.fresh.empty()) return sets.old.clear();
  gather(kOldSample, sets.old);
  std::erase_if(sets.old, [&](uint32_t other) {
    return std::binary_search(sets.fresh.begin(), sets.fresh.end(), other);
  });
}

// Whether a list takes an offer: it lacks that neighbour, and has a place for it.
inline bool takes_offer(const uint64_t* list, int64_t length, uint64_t neighbor) {
  const uint64_t* const end = list + length;
  const uint64_t* const at =
      std::lower_bound(list, end, neighbor, [](uint64_t a, uint64_t b) { return without_flag(a) < b; });
  return at != end && without_flag(*at) != neighbor;
}

// The offers that wait for a row enter its list, and leave their slots. Returns how many stay.
inline int64_t merge_offers(uint64_t* offers, int64_t slots, WorkingLists& lists, int64_t row) {
  uint64_t* const end = std::remove(offers, offers + slots, kPadding);
  for (uint64_t* offer = offers; offer < end; ++offer) lists.offer_alone(row, *offer);
  int64_t stayed = 0;
  for (const uint64_t* offer = offers; offer < end; ++offer) {
    stayed += *offer <= without_flag(lists.list(row)[lists.length() - 1]) ? 1 : 0;
  }
  std::fill_n(offers, slots, kPadding);
  return stayed;
}

}  // namespace kith
