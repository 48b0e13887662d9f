// The rounds of NN-Descent on the CPU. A thread joins the samples of one row: blocked products rule pairs out,
// canonical keys decide among those that may be offered.
#include "graph/build/nn_descent/nn_descent.hpp"

#include "core/divide.hpp"
#include "graph/build/nn_descent/join_rules.hpp"
#include "graph/lists/graph_share.hpp"
#include "graph/lists/pairs/pair_keys.hpp"
#include "graph/lists/pairs/pair_scan.hpp"
#include "rows/row_blocks.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kRowsPerTask = 256;

// The two kinds of a row's samples are contiguous.
enum Kind : int64_t { kNew = 0, kOld = 1 };

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
      keys_(rows) {
  scan_->make_room_for_nearest();
}

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

class DescentStepsCpu final : public DescentSteps {
 public:
  DescentStepsCpu(const PairRows& rows, const DescentRules& rules, WorkingLists& lists, const Resources& resources)
      : rules_(rules),
        lists_(lists),
        resources_(resources),
        forward_(2 * rules.samples * lists.rows(), "samples", resources),
        reverse_(2 * rules.samples * lists.rows(), "samples", resources),
        inbox_(lists.rows(), rules.inbox_slots, resources),
        own_(rules.share == nullptr ? RankPart{0, lists.rows()} : rules.share->rows()),
        own_order_(rules.share == nullptr || rules.order == nullptr ? 0 : own_.count, "the order of rows", resources),
        gathered_(rules.gathered_rows * rules.inbox_slots, "the ranks' offers", resources) {
    if (own_order_.size() > 0) {
      std::copy_if(rules.order, rules.order + lists.rows(), own_order_.begin(), [&](uint32_t row) { return is_own(row); });
    }
    for (int slot = 0; slot < resources.threads(); ++slot) {
      workers_.push_back(std::make_unique<JoinWorker>(rows, rules, lists, inbox_, resources));
    }
  }

  void sample(int64_t round, ProgressMeter& meter) override {
    const uint64_t salt = round_salt(rules_.seed, round);
    for_all_rows(meter, [&](int64_t row, int) {
      draw(row);
      std::fill_n(reverse(row, kNew), 2 * rules_.samples, kNobody);
    });
    for_all_rows(meter, [&](int64_t row, int) {
      for (const Kind kind : {kNew, kOld}) {
        const uint32_t* const samples = forward(row, kind);
        for (int64_t i = 0; i < rules_.samples && samples[i] != kNobody; ++i) {
          if (!is_own(samples[i])) continue;
          const uint32_t hash = pair_hash(salt, static_cast<uint32_t>(row), samples[i]);
          __builtin_prefetch(reverse(samples[i], kind) + place_of(hash, rules_.samples), 1);
        }
        for (int64_t i = 0; i < rules_.samples && samples[i] != kNobody; ++i) {
          if (is_own(samples[i])) name(static_cast<uint32_t>(row), samples[i], kind, salt);
        }
      }
    });
  }

  int64_t join(int64_t round, ProgressMeter& meter) override {
    const uint64_t salt = round_salt(rules_.seed, round);
    std::vector<int64_t> pairs(static_cast<size_t>(resources_.threads()), 0);
    std::vector<JoinSets> sets(pairs.size());
    for_own_rows(meter, [&](int64_t row, int slot) {
      JoinSets& mine = sets[static_cast<size_t>(slot)];
      collect(row, mine);
      pairs[static_cast<size_t>(slot)] += workers_[static_cast<size_t>(slot)]->join(mine, salt);
      if (row % 64 == 0) meter.checkpoint();
    });
    int64_t all = 0;
    for (const int64_t count : pairs) all += count;
    return all;
  }

  void gather() override { rules_.share->gather_offers(inbox_.of(0), inbox_.slots(), gathered_, resources_); }

  int64_t merge(ProgressMeter& meter) override {
    std::atomic<int64_t> entered{0};
    for_own_rows(meter, [&](int64_t row, int) {
      uint64_t* const offers = inbox_.of(row);
      uint64_t* const end = std::remove(offers, offers + inbox_.slots(), kPadding);
      for (uint64_t* offer = offers; offer < end; ++offer) lists_.offer_alone(row, *offer);
      int64_t stayed = 0;
      for (const uint64_t* offer = offers; offer < end; ++offer) {
        stayed += *offer <= without_flag(lists_.list(row)[lists_.length() - 1]) ? 1 : 0;
      }
      entered.fetch_add(stayed, std::memory_order_relaxed);
      std::fill_n(offers, inbox_.slots(), kPadding);
    });
    if (rules_.share != nullptr) clear_inbox();  // of offers to the rows of others
    return entered.load();
  }

 private:
  template <typename Body>
  void for_all_rows(ProgressMeter& meter, const Body& body) {
    for_rows({0, lists_.rows()}, rules_.order, meter, body);
  }
  // With their samples joined here.
  template <typename Body>
  void for_own_rows(ProgressMeter& meter, const Body& body) {
    const uint32_t* const order = rules_.share == nullptr || rules_.order == nullptr ? rules_.order : own_order_.data();
    for_rows(own_, order, meter, body);
  }
  // `order`: of these rows; null: as they are stored.
  template <typename Body>
  void for_rows(const RankPart& rows, const uint32_t* order, ProgressMeter& meter, const Body& body) {
    parallel_for(divide_up(rows.count, kRowsPerTask), meter, resources_, [&](int64_t task, int slot) {
      const int64_t end = std::min((task + 1) * kRowsPerTask, rows.count);
      for (int64_t i = task * kRowsPerTask; i < end; ++i) body(order == nullptr ? rows.first + i : order[i], slot);
      meter.add(end - task * kRowsPerTask);
    });
  }
  void clear_inbox() const {
    const Resources quiet = resources_.with_progress({});
    for_row_blocks("offers", lists_.rows(), quiet,
                   [&](int64_t first, int64_t end) { std::fill(inbox_.of(first), inbox_.of(end), kPadding); });
  }
  bool is_own(uint32_t row) const { return row >= own_.first && row < own_.end(); }

  uint32_t* forward(int64_t row, Kind kind) const { return forward_.data() + (2 * row + kind) * rules_.samples; }
  uint32_t* reverse(int64_t row, Kind kind) const { return reverse_.data() + (2 * row + kind) * rules_.samples; }

  // The first of each kind in a list.
  void draw(int64_t row) {
    int64_t counts[2] = {0, 0};
    std::fill_n(forward(row, kNew), 2 * rules_.samples, kNobody);
    uint64_t* const list = lists_.list(row);
    for (int64_t j = 0; j < lists_.length() && list[j] != kPadding; ++j) {
      const Kind kind = is_old(list[j]) ? kOld : kNew;
      const uint32_t other = row_of(without_flag(list[j]));
      if (counts[kind] == rules_.samples || (kind == kOld && !may_be_old(row, other))) continue;
      forward(row, kind)[counts[kind]++] = other;
      list[j] |= kOldFlag;
    }
  }

  // In a merge OLD ones are of the row's own set: only they meet NEW ones across.
  bool may_be_old(int64_t row, uint32_t other) const {
    return rules_.boundary == 0 || (other < rules_.boundary) == (row < rules_.boundary);
  }

  // `from` has sampled `to`.
  void name(uint32_t from, uint32_t to, Kind kind, uint64_t salt) {
    const int64_t place = place_of(pair_hash(salt, from, to), rules_.samples);
    const std::atomic_ref<uint32_t> bucket(reverse(to, kind)[place]);
    uint32_t there = bucket.load(std::memory_order_relaxed);
    while (replaces(salt, to, from, there) &&
           !bucket.compare_exchange_weak(there, from, std::memory_order_relaxed)) {
    }
  }

  // Collects forward and reverse samples of a row without duplicates; a NEW one is not OLD.
  void collect(int64_t row, JoinSets& sets) const {
    const auto gather = [&](Kind kind, std::vector<uint32_t>& out) {
      out.clear();
      for (const uint32_t* from : {forward(row, kind), reverse(row, kind)}) {
        for (int64_t i = 0; i < rules_.samples; ++i) {
          if (from[i] != kNobody) out.push_back(from[i]);
        }
      }
      std::sort(out.begin(), out.end());
      out.erase(std::unique(out.begin(), out.end()), out.end());
    };
    gather(kNew, sets.fresh);
    if (sets.fresh.empty()) return sets.old.clear();
    gather(kOld, sets.old);
    std::erase_if(sets.old, [&](uint32_t other) {
      return std::binary_search(sets.fresh.begin(), sets.fresh.end(), other);
    });
  }

  const DescentRules rules_;
  WorkingLists& lists_;
  const Resources resources_;
  HostArray<uint32_t> forward_;
  HostArray<uint32_t> reverse_;
  Inbox inbox_;
  const RankPart own_;
  const HostArray<uint32_t> own_order_;  // rules_.order of these, where there is one
  const HostArray<uint64_t> gathered_;
  std::vector<std::unique_ptr<JoinWorker>> workers_;
};

}  // namespace

std::unique_ptr<DescentSteps> make_descent_steps_cpu(const PairRows& rows, const DescentRules& rules,
                                                     WorkingLists& lists, const Resources& resources) {
  return std::make_unique<DescentStepsCpu>(rows, rules, lists, resources);
}

}  // namespace kith
