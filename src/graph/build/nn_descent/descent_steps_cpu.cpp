// The rounds of NN-Descent on the CPU, over lists in memory. A thread joins the samples of one row (join_worker.hpp).
#include "graph/build/nn_descent/nn_descent.hpp"

#include "core/divide.hpp"
#include "graph/build/nn_descent/inbox.hpp"
#include "graph/build/nn_descent/join_rules.hpp"
#include "graph/build/nn_descent/join_samples.hpp"
#include "graph/build/nn_descent/join_worker.hpp"
#include "graph/lists/graph_share.hpp"
#include "rows/row_blocks.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kRowsPerTask = 256;

// Offers from joins to lists, which do not change meanwhile.
class InboxTarget {
 public:
  InboxTarget(const WorkingLists& lists, const Inbox& inbox) : lists_(lists), inbox_(inbox) {}

  void begin(uint64_t salt) { salt_ = salt; }
  float largest_key(uint32_t row) const { return lists_.largest_key(row); }
  bool in_vain(uint32_t row, uint32_t other, float lower, float upper) const {
    const int64_t slot = inbox_slot(salt_, other, inbox_.slots());
    return ordered_key(lower) > inbox_.threshold(row, slot) || knows(row, other, lower, upper);
  }
  void offer(uint32_t row, uint64_t neighbor) const {
    if (!takes_offer(lists_.list(row), lists_.length(), neighbor)) return;
    inbox_.offer(row, inbox_slot(salt_, row_of(neighbor), inbox_.slots()), neighbor);
  }

 private:
  // Whether `row` has `other` in its list, given bounds for their key.
  bool knows(uint32_t row, uint32_t other, float lower, float upper) const;

  const WorkingLists& lists_;
  const Inbox& inbox_;
  uint64_t salt_ = 0;
};

bool InboxTarget::knows(uint32_t row, uint32_t other, float lower, float upper) const {
  const uint64_t* const first = lists_.list(row);
  const uint64_t* const end = first + lists_.length();
  const uint32_t last = ordered_key(upper);
  const uint32_t least = ordered_key(lower);
  const uint64_t* at =
      std::lower_bound(first, end, least, [](uint64_t a, uint32_t key) { return ordered_of(a) < key; });
  for (; at < end && ordered_of(*at) <= last && *at != kPadding; ++at) {
    if (row_of(without_flag(*at)) == other) return true;
  }
  return false;
}

class DescentStepsCpu final : public DescentSteps {
 public:
  DescentStepsCpu(const PairRows& rows, const DescentRules& rules, WorkingLists& lists, const Resources& resources,
                  const DescentPasses& passes)
      : rules_(rules),
        passes_(passes),
        lists_(lists),
        resources_(resources),
        forward_(2 * rules.samples * lists.rows(), "samples", resources),
        reverse_(2 * rules.samples * lists.rows(), "samples", resources),
        inbox_(lists.rows(), rules.inbox_slots, resources),
        target_(lists, inbox_),
        own_(passes.share == nullptr ? RankPart{0, lists.rows()} : passes.share->rows()),
        own_order_(passes.share == nullptr || passes.order == nullptr ? 0 : own_.count, "the order of rows", resources),
        gathered_(passes.gathered_rows * rules.inbox_slots, "the ranks' offers", resources) {
    if (own_order_.size() > 0) {
      std::copy_if(passes.order, passes.order + lists.rows(), own_order_.begin(),
                   [&](uint32_t row) { return is_own(row); });
    }
    for (int slot = 0; slot < resources.threads(); ++slot) {
      workers_.push_back(std::make_unique<JoinWorker<InboxTarget>>(rows, rules, target_, resources));
    }
  }

  void sample(int64_t round, ProgressMeter& meter) override {
    const uint64_t salt = round_salt(rules_.seed, round);
    for_all_rows(meter, [&](int64_t row, int) {
      draw_samples(rules_, row, lists_.list(row), lists_.length(), forward(row, kNewSample));
      std::fill_n(reverse(row, kNewSample), 2 * rules_.samples, kNobody);
    });
    for_all_rows(meter, [&](int64_t row, int) {
      for (const SampleKind kind : {kNewSample, kOldSample}) {
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
    target_.begin(round_salt(rules_.seed, round));
    std::vector<int64_t> pairs(static_cast<size_t>(resources_.threads()), 0);
    std::vector<JoinSets> sets(pairs.size());
    for_own_rows(meter, [&](int64_t row, int slot) {
      JoinSets& mine = sets[static_cast<size_t>(slot)];
      collect_samples(forward(row, kNewSample), reverse(row, kNewSample), rules_.samples, mine);
      pairs[static_cast<size_t>(slot)] += workers_[static_cast<size_t>(slot)]->join(mine);
      if (row % 64 == 0) meter.checkpoint();
    });
    int64_t all = 0;
    for (const int64_t count : pairs) all += count;
    return all;
  }

  void gather() override { passes_.share->gather_offers(inbox_.of(0), inbox_.slots(), gathered_, resources_); }

  int64_t merge(ProgressMeter& meter) override {
    std::atomic<int64_t> entered{0};
    for_own_rows(meter, [&](int64_t row, int) {
      entered.fetch_add(merge_offers(inbox_.of(row), inbox_.slots(), lists_, row), std::memory_order_relaxed);
    });
    if (passes_.share != nullptr) clear_inbox();  // of offers to the rows of others
    return entered.load();
  }

 private:
  template <typename Body>
  void for_all_rows(ProgressMeter& meter, const Body& body) {
    for_rows({0, lists_.rows()}, passes_.order, meter, body);
  }
  // With their samples joined here.
  template <typename Body>
  void for_own_rows(ProgressMeter& meter, const Body& body) {
    const uint32_t* const order =
        passes_.share == nullptr || passes_.order == nullptr ? passes_.order : own_order_.data();
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

  uint32_t* forward(int64_t row, SampleKind kind) const { return forward_.data() + (2 * row + kind) * rules_.samples; }
  uint32_t* reverse(int64_t row, SampleKind kind) const { return reverse_.data() + (2 * row + kind) * rules_.samples; }

  // `from` has sampled `to`.
  void name(uint32_t from, uint32_t to, SampleKind kind, uint64_t salt) {
    const int64_t place = place_of(pair_hash(salt, from, to), rules_.samples);
    const std::atomic_ref<uint32_t> bucket(reverse(to, kind)[place]);
    uint32_t there = bucket.load(std::memory_order_relaxed);
    while (replaces(salt, to, from, there) &&
           !bucket.compare_exchange_weak(there, from, std::memory_order_relaxed)) {
    }
  }

  const DescentRules rules_;
  const DescentPasses passes_;
  WorkingLists& lists_;
  const Resources resources_;
  HostArray<uint32_t> forward_;
  HostArray<uint32_t> reverse_;
  Inbox inbox_;
  InboxTarget target_;
  const RankPart own_;
  const HostArray<uint32_t> own_order_;  // passes_.order of these, where there is one
  const HostArray<uint64_t> gathered_;
  std::vector<std::unique_ptr<JoinWorker<InboxTarget>>> workers_;
};

}  // namespace

std::unique_ptr<DescentSteps> make_descent_steps_cpu(const PairRows& rows, const DescentRules& rules,
                                                     WorkingLists& lists, const Resources& resources,
                                                     const DescentPasses& passes) {
  return std::make_unique<DescentStepsCpu>(rows, rules, lists, resources, passes);
}

}  // namespace kith
