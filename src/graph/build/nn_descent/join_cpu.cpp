#include "graph/build/nn_descent/join_cpu.hpp"

#include "graph/build/nn_descent/join_rules.hpp"

#include <algorithm>
#include <atomic>

namespace kith {

Inbox::Inbox(int64_t rows, int64_t slots, const Resources& resources)
    : slots_(slots), words_(rows * slots, "offers to the lists", resources) {
  std::fill(words_.begin(), words_.end(), kPadding);
}

void Inbox::offer(int64_t row, int64_t slot, uint64_t neighbor) const {
  const std::atomic_ref<uint64_t> word(of(row)[slot]);
  uint64_t there = word.load(std::memory_order_relaxed);
  while (neighbor < there && !word.compare_exchange_weak(there, neighbor, std::memory_order_relaxed)) {
  }
}

JoinWorker::JoinWorker(const PairRows& rows, const DescentRules& rules, const WorkingLists& lists, const Inbox& inbox,
                       const Resources& resources)
    : rules_(rules),
      lists_(lists),
      inbox_(inbox),
      scan_(make_pair_scan(rows, 2 * rules.samples, 2 * rules.samples, resources,
                           choose_float_pairs(rows.cols(), rules.random_lists))),
      keys_(rows) {}

int64_t JoinWorker::join(const JoinSets& sets, uint64_t salt) {
  salt_ = salt;
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
void JoinWorker::compare(const std::vector<uint32_t>& queries, const std::vector<uint32_t>& rows, bool both_sides) {
  queries_ = queries.data();
  rows_ = rows.data();
  scan_->set_rows(rows.data(), static_cast<int64_t>(rows.size()));
  of_query_.resize(queries.size());
  of_row_.assign(rows.size(), {kNoKey, 0, kPadding});
  for (size_t i = 0; i < queries.size(); ++i) {
    of_query_[i] = {lists_.largest_key(queries[i]), 0, kPadding};
    scan_->limit_query(static_cast<int64_t>(i), of_query_[i].upper);
  }
  for (size_t i = 0; i < rows.size() && both_sides; ++i) {
    of_row_[i].upper = lists_.largest_key(rows[i]);
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

void JoinWorker::on_pair(const PairHit& hit) {
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

bool JoinWorker::in_vain(uint32_t row, uint32_t other, float lower, float upper) const {
  const int64_t slot = inbox_slot(salt_, other, inbox_.slots());
  return ordered_key(lower) > inbox_.threshold(row, slot) || knows(row, other, lower, upper);
}

bool JoinWorker::knows(uint32_t row, uint32_t other, float lower, float upper) const {
  const uint64_t* const first = lists_.list(row);
  const uint64_t* const end = first + lists_.length();
  const uint32_t last = ordered_key(upper);
  const uint32_t least = ordered_key(lower);
  const uint64_t* at = std::lower_bound(first, end, least, [](uint64_t a, uint32_t key) { return ordered_of(a) < key; });
  for (; at < end && ordered_of(*at) <= last && *at != kPadding; ++at) {
    if (row_of(without_flag(*at)) == other) return true;
  }
  return false;
}

// Leaves the candidates that may be the nearest of a sample, where any of them would not be offered in vain.
void JoinWorker::drop_what_lost() {
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
    const bool query_in_vain = pair.for_query && in_vain(query, row, pair.lower, pair.upper);
    const bool row_in_vain = pair.for_row && in_vain(row, query, pair.lower, pair.upper);
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

void JoinWorker::settle() {
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
        if (candidates_[i].for_query) offer(query, to_query);
        if (candidates_[i].for_row) offer(others_[i - first], to_row);
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
    if (of_query_[i].neighbor != kPadding) offer(queries_[i], of_query_[i].neighbor);
  }
  for (size_t i = 0; i < of_row_.size(); ++i) {
    if (of_row_[i].neighbor != kPadding) offer(rows_[i], of_row_[i].neighbor);
  }
}

void JoinWorker::offer(uint32_t row, uint64_t neighbor) const {
  const uint64_t* const first = lists_.list(row);
  const uint64_t* const end = first + lists_.length();
  const uint64_t* const at = std::lower_bound(
      first, end, neighbor, [](uint64_t a, uint64_t b) { return without_flag(a) < b; });
  if (at == end || without_flag(*at) == neighbor) return;
  inbox_.offer(row, inbox_slot(salt_, row_of(neighbor), inbox_.slots()), neighbor);
}

}  // namespace kith
