// The joins of NN-Descent on the CPU: the samples of one row are compared by one thread. Blocked products rule pairs
// out, canonical keys decide among those that may be offered.
//
// Target, which receives the offers of any thread:
//   float largest_key(uint32_t row)    beyond which nothing enters the row's list
//   bool in_vain(uint32_t row, uint32_t other, float lower, float upper)
//                                      whether an offer of that key would surely be dropped; may always say no
//   void offer(uint32_t row, uint64_t neighbor)
#pragma once

#include <kith/resources.hpp>

#include "graph/build/nn_descent/join_rules.hpp"
#include "graph/build/nn_descent/join_samples.hpp"
#include "graph/lists/pairs/pair_keys.hpp"
#include "graph/lists/pairs/pair_scan.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace kith {

template <typename Target>
class JoinWorker final : private PairHits {
 public:
  // The arguments must outlive it.
  JoinWorker(const PairRows& rows, const DescentRules& rules, const Target& target, const Resources& resources);

  // Returns the pairs compared.
  int64_t join(const JoinSets& sets);

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

  const DescentRules rules_;
  const Target& target_;
  std::unique_ptr<PairScan> scan_;
  PairKeys keys_;
  const uint32_t* queries_ = nullptr;
  const uint32_t* rows_ = nullptr;
  std::vector<Nearest> of_query_;
  std::vector<Nearest> of_row_;
  std::vector<Candidate> candidates_;
  std::vector<uint32_t> others_;
  std::vector<float> found_;
};

template <typename Target>
JoinWorker<Target>::JoinWorker(const PairRows& rows, const DescentRules& rules, const Target& target,
                               const Resources& resources)
    : rules_(rules),
      target_(target),
      scan_(make_pair_scan(rows, 2 * rules.samples, 2 * rules.samples, resources,
                           choose_float_pairs(rows.cols(), rules.random_lists))),
      keys_(rows) {
  scan_->make_room_for_nearest();
}

template <typename Target>
int64_t JoinWorker<Target>::join(const JoinSets& sets) {
  const auto fresh = static_cast<int64_t>(sets.fresh.size());
  const auto old = static_cast<int64_t>(sets.old.size());
  const bool among_themselves = rules_.boundary == 0 && fresh > 1;
  if (fresh == 0 || (!among_themselves && old == 0)) return 0;
  scan_->set_queries(sets.fresh.data(), fresh);
  if (among_themselves) compare(sets.fresh, sets.fresh, false);
  if (old > 0) compare(sets.fresh, sets.old, true);
  return (among_themselves ? fresh * (fresh - 1) / 2 : 0) + fresh * old;
}

// The queries are in their place.
template <typename Target>
void JoinWorker<Target>::compare(const std::vector<uint32_t>& queries, const std::vector<uint32_t>& rows,
                                 bool both_sides) {
  queries_ = queries.data();
  rows_ = rows.data();
  scan_->set_rows(rows.data(), static_cast<int64_t>(rows.size()));
  of_query_.resize(queries.size());
  of_row_.assign(rows.size(), {kNoKey, 0, kPadding});
  for (size_t i = 0; i < queries.size(); ++i) {
    of_query_[i] = {target_.largest_key(queries[i]), 0, kPadding};
    scan_->limit_query(static_cast<int64_t>(i), of_query_[i].upper);
  }
  for (size_t i = 0; i < rows.size() && both_sides; ++i) {
    of_row_[i].upper = target_.largest_key(rows[i]);
    scan_->limit_row(static_cast<int64_t>(i), of_row_[i].upper);
  }
  candidates_.clear();
  if (rules_.all_pairs) {
    scan_->run(*this);
  } else {
    scan_->run_nearest(*this, !both_sides);
  }
  settle();
}

template <typename Target>
void JoinWorker<Target>::on_pair(const PairHit& hit) {
  if (queries_[hit.query] == rows_[hit.row]) return;
  Nearest& of_query = of_query_[static_cast<size_t>(hit.query)];
  Nearest& of_row = of_row_[static_cast<size_t>(hit.row)];
  const bool for_query = hit.for_query && hit.lower <= of_query.upper;
  const bool for_row = hit.for_row && hit.lower <= of_row.upper;
  if (!for_query && !for_row) return;
  candidates_.push_back({static_cast<int32_t>(hit.query), static_cast<int32_t>(hit.row), hit.lower, hit.upper,
                         for_query, for_row});
  if (rules_.all_pairs) return;
  if (for_query && hit.upper < of_query.upper) scan_->limit_query(hit.query, of_query.upper = hit.upper);
  if (for_row && hit.upper < of_row.upper) scan_->limit_row(hit.row, of_row.upper = hit.upper);
}

// Leaves the candidates that may be the nearest of a sample, where any of them would not be offered in vain.
template <typename Target>
void JoinWorker<Target>::drop_what_lost() {
  const auto left = [this](Candidate& pair) {
    Nearest& of_query = of_query_[static_cast<size_t>(pair.query)];
    Nearest& of_row = of_row_[static_cast<size_t>(pair.row)];
    pair.for_query = pair.for_query && pair.lower <= of_query.upper;
    pair.for_row = pair.for_row && pair.lower <= of_row.upper;
    of_query.candidates += pair.for_query ? 1 : 0;
    of_row.candidates += pair.for_row ? 1 : 0;
    return pair.for_query || pair.for_row;
  };
  std::erase_if(candidates_, [&](Candidate& pair) { return !left(pair); });
  for (Candidate& pair : candidates_) {
    const uint32_t query = queries_[pair.query];
    const uint32_t row = rows_[pair.row];
    const bool query_in_vain = pair.for_query && target_.in_vain(query, row, pair.lower, pair.upper);
    const bool row_in_vain = pair.for_row && target_.in_vain(row, query, pair.lower, pair.upper);
    of_query_[static_cast<size_t>(pair.query)].candidates -= query_in_vain ? 1 : 0;
    of_row_[static_cast<size_t>(pair.row)].candidates -= row_in_vain ? 1 : 0;
    if (!rules_.all_pairs) continue;
    pair.for_query = pair.for_query && !query_in_vain;
    pair.for_row = pair.for_row && !row_in_vain;
  }
  std::erase_if(candidates_, [this](Candidate& pair) {
    pair.for_query = pair.for_query && of_query_[static_cast<size_t>(pair.query)].candidates > 0;
    pair.for_row = pair.for_row && of_row_[static_cast<size_t>(pair.row)].candidates > 0;
    return !pair.for_query && !pair.for_row;
  });
}

template <typename Target>
void JoinWorker<Target>::settle() {
  drop_what_lost();
  std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
    return a.query != b.query ? a.query < b.query : a.row < b.row;
  });
  constexpr size_t kAhead = 12;  // rows on their way while keys are computed
  size_t ahead = 0;
  for (size_t first = 0; first < candidates_.size();) {
    size_t end = first;
    for (; !scan_->exact() && ahead < std::min(first + kAhead, candidates_.size()); ++ahead) {
      keys_.prefetch(rows_[candidates_[ahead].row]);
    }
    others_.clear();
    const int32_t place = candidates_[first].query;
    for (; end < candidates_.size() && candidates_[end].query == place; ++end) {
      others_.push_back(rows_[candidates_[end].row]);
    }
    found_.resize(others_.size());
    const uint32_t query = queries_[place];
    if (scan_->exact()) {
      for (size_t i = first; i < end; ++i) found_[i - first] = candidates_[i].lower;
    } else {
      keys_.of(query, others_.data(), static_cast<int64_t>(others_.size()), found_.data());
    }
    for (size_t i = first; i < end; ++i) {
      const uint32_t key = ordered_key(found_[i - first]);
      const uint64_t to_query = pack_neighbor(key, others_[i - first]);
      const uint64_t to_row = pack_neighbor(key, query);
      if (rules_.all_pairs) {
        if (candidates_[i].for_query) target_.offer(query, to_query);
        if (candidates_[i].for_row) target_.offer(others_[i - first], to_row);
        continue;
      }
      uint64_t& nearest = of_query_[static_cast<size_t>(place)].neighbor;
      if (candidates_[i].for_query) nearest = std::min(nearest, to_query);
      uint64_t& other = of_row_[static_cast<size_t>(candidates_[i].row)].neighbor;
      if (candidates_[i].for_row) other = std::min(other, to_row);
    }
    first = end;
  }
  if (rules_.all_pairs) return;
  for (size_t i = 0; i < of_query_.size(); ++i) {
    if (of_query_[i].neighbor != kPadding) target_.offer(queries_[i], of_query_[i].neighbor);
  }
  for (size_t i = 0; i < of_row_.size(); ++i) {
    if (of_row_[i].neighbor != kPadding) target_.offer(rows_[i], of_row_[i].neighbor);
  }
}

}  // namespace kith
