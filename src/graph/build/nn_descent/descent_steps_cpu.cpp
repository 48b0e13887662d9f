// The rounds of NN-Descent on the CPU.
#include "graph/build/nn_descent/descent_steps.hpp"

#include "core/divide.hpp"
#include "graph/build/nn_descent/join_cpu.hpp"
#include "graph/build/nn_descent/join_rules.hpp"

#include <algorithm>
#include <atomic>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kRowsPerTask = 256;

// The two kinds of samples of a row lie one after the other.
enum Kind : int64_t { kNew = 0, kOld = 1 };

class DescentStepsCpu final : public DescentSteps {
 public:
  DescentStepsCpu(const PairRows& rows, const DescentRules& rules, WorkingLists& lists, const Resources& resources)
      : rules_(rules),
        lists_(lists),
        resources_(resources),
        forward_(2 * rules.samples * lists.rows(), "samples", resources),
        reverse_(2 * rules.samples * lists.rows(), "samples", resources),
        inbox_(lists.rows(), rules.inbox_slots, resources) {
    for (int slot = 0; slot < resources.threads(); ++slot) {
      workers_.push_back(std::make_unique<JoinWorker>(rows, rules, lists, inbox_, resources));
    }
  }

  void sample(int64_t round, ProgressMeter& meter) override {
    const uint64_t salt = round_salt(rules_.seed, round);
    for_rows(meter, [&](int64_t row, int) {
      draw(row);
      std::fill_n(reverse(row, kNew), 2 * rules_.samples, kNobody);
    });
    for_rows(meter, [&](int64_t row, int) {
      for (const Kind kind : {kNew, kOld}) {
        const uint32_t* const samples = forward(row, kind);
        for (int64_t i = 0; i < rules_.samples && samples[i] != kNobody; ++i) {
          const uint32_t hash = pair_hash(salt, static_cast<uint32_t>(row), samples[i]);
          __builtin_prefetch(reverse(samples[i], kind) + place_of(hash, rules_.samples), 1);
        }
        for (int64_t i = 0; i < rules_.samples && samples[i] != kNobody; ++i) {
          name(static_cast<uint32_t>(row), samples[i], kind, salt);
        }
      }
    });
  }

  int64_t join(int64_t round, ProgressMeter& meter) override {
    const uint64_t salt = round_salt(rules_.seed, round);
    std::vector<int64_t> pairs(static_cast<size_t>(resources_.threads()), 0);
    std::vector<JoinSets> sets(pairs.size());
    for_rows(meter, [&](int64_t row, int slot) {
      JoinSets& mine = sets[static_cast<size_t>(slot)];
      collect(row, mine);
      pairs[static_cast<size_t>(slot)] += workers_[static_cast<size_t>(slot)]->join(mine, salt);
      if (row % 64 == 0) meter.checkpoint();
    });
    int64_t all = 0;
    for (const int64_t count : pairs) all += count;
    return all;
  }

  int64_t merge(ProgressMeter& meter) override {
    std::atomic<int64_t> entered{0};
    for_rows(meter, [&](int64_t row, int) {
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
    return entered.load();
  }

 private:
  template <typename Body>
  void for_rows(ProgressMeter& meter, const Body& body) {
    const int64_t rows = lists_.rows();
    parallel_for(divide_up(rows, kRowsPerTask), meter, resources_, [&](int64_t task, int slot) {
      const int64_t end = std::min((task + 1) * kRowsPerTask, rows);
      for (int64_t i = task * kRowsPerTask; i < end; ++i) body(rules_.order == nullptr ? i : rules_.order[i], slot);
      meter.add(end - task * kRowsPerTask);
    });
  }

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

  // Forward and reverse samples of a row, nobody twice; who is NEW is not OLD.
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
  std::vector<std::unique_ptr<JoinWorker>> workers_;
};

}  // namespace

std::unique_ptr<DescentSteps> make_descent_steps_cpu(const PairRows& rows, const DescentRules& rules,
                                                     WorkingLists& lists, const Resources& resources) {
  return std::make_unique<DescentStepsCpu>(rows, rules, lists, resources);
}

int64_t descent_steps_bytes_cpu(int64_t rows, int64_t cols, PanelFormat format, const DescentRules& rules,
                                int threads) {
  return rows * (16 * rules.samples + 8 * rules.inbox_slots) +
         threads * (pair_scan_bytes(format, cols, 2 * rules.samples, 2 * rules.samples,
                                    choose_float_pairs(cols, rules.random_lists)) +
                    nearest_scan_bytes(2 * rules.samples, 2 * rules.samples));
}

}  // namespace kith
