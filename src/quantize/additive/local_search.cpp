#include "quantize/additive/local_search.hpp"

#include <numeric>
#include <utility>

namespace kith {
namespace {

constexpr uint64_t kOrderStream = uint64_t{1} << 63;  // not the number of any row
constexpr int32_t kNever = -1;
constexpr int32_t kOver = kNever;  // no later than any step

}  // namespace

LocalSearchPlan plan_of(const LocalSearchParams& params, int64_t rounds, int64_t from_round) {
  LocalSearchPlan plan;
  plan.rounds = rounds;
  plan.from_round = from_round;
  plan.sweeps = params.sweeps;
  plan.perturbed = params.perturbed_codes();
  plan.random_order = params.order == SweepOrder::random;
  plan.seed = params.seed;
  return plan;
}

void order_books(const LocalSearchPlan& plan, int64_t round, int64_t sweep, int64_t books,
                 std::vector<int64_t>& order) {
  order.resize(static_cast<size_t>(books));
  std::iota(order.begin(), order.end(), int64_t{0});
  if (!plan.random_order) return;
  const CounterRng rng(plan.seed, kOrderStream);
  const auto first = static_cast<uint64_t>(round * plan.sweeps + sweep) << 8;
  for (int64_t left = books; left > 1; --left) {
    const auto with = rng.below(first + static_cast<uint64_t>(left) % 256, static_cast<uint32_t>(left));
    std::swap(order[static_cast<size_t>(left - 1)], order[with]);
  }
}

LocalSearch::LocalSearch(const LocalSearchPlan& plan, const Codebooks& books, int64_t block_rows,
                         const Resources& resources)
    : plan_(plan),
      books_(books.books),
      bits_(books.bits),
      block_rows_(block_rows),
      current_(block_rows * books_, "a block of codes", resources),
      marks_(block_rows, "a block of codes", resources),
      changed_(block_rows, "a block of codes", resources),
      looked_(block_rows * books_, "a block of codes", resources),
      active_(block_rows, "a block of codes", resources),
      found_(block_rows, "a block of codes", resources),
      minima_(books_, block_rows, resources) {}

void LocalSearch::start_greedy(IcmEngine& engine, int64_t count, uint8_t* codes) {
  std::iota(active_.begin(), active_.begin() + count, 0u);
  std::fill_n(codes, count * books_, uint8_t{0});
  for (int64_t k = 0; k < books_; ++k) {
    engine.step(k, IcmOthers::before, codes, active_.data(), count, found_.data());
    for (int64_t i = 0; i < count; ++i) codes[i * books_ + k] = found_[i];
  }
}

bool LocalSearch::sweep(IcmEngine& engine, int64_t count, int32_t* now) {
  uint8_t* const current = current_.data();
  uint32_t* const marks = marks_.data();
  int32_t* const changed = changed_.data();
  uint32_t* const active = active_.data();
  uint8_t* const found = found_.data();
  bool any = false;
  for (const int64_t k : order_) {
    ++*now;
    int32_t* const looked = looked_.data() + k * block_rows_;
    int64_t active_count = 0;
    for (int64_t i = 0; i < count; ++i) {
      // Without a branch: which rows are active is hard to foresee.
      const bool stale = changed[i] > looked[i];
      looked[i] = stale ? *now : looked[i];
      active[active_count] = static_cast<uint32_t>(i);
      active_count += stale ? 1 : 0;
    }
    if (active_count == 0) continue;
    any = true;
    engine.step(k, IcmOthers::all, current, active, active_count, found);
    int64_t moved = 0;  // rows whose code is another now, in the places of those that were active
    for (int64_t a = 0; a < active_count; ++a) {
      const uint32_t i = active[a];
      uint8_t& code = current[i * books_ + k];
      marks[i] += LocalMinima::mark_of(k, found[a]) - LocalMinima::mark_of(k, code);
      active[moved] = i;
      moved += code != found[a] ? 1 : 0;
      code = found[a];
    }
    for (int64_t m = 0; m < moved; ++m) {
      const int64_t i = active[m];
      changed[i] = minima_.holds(i, current + i * books_, marks[i]) ? kOver : *now;
    }
  }
  return any;
}

void LocalSearch::start_round(const int64_t* numbers, int64_t round, int64_t count, const uint8_t* codes) {
  std::copy_n(codes, count * books_, current_.data());
  for (int64_t i = 0; i < count; ++i) {
    uint8_t* const current = current_.data() + i * books_;
    perturb_codes(plan_, numbers[i], round, books_, bits_, current);
    marks_[i] = minima_.mark_of(current);
    changed_[i] = minima_.holds(i, current, marks_[i]) ? kOver : 0;
  }
  std::fill(looked_.begin(), looked_.end(), kNever);
}

bool LocalSearch::is_local_minimum(int64_t row) const {
  bool all_tried = true;
  for (int64_t k = 0; k < books_; ++k) all_tried &= looked_[k * block_rows_ + row] >= changed_[row];
  return all_tried;
}

void LocalSearch::end_round(IcmEngine& engine, int64_t count, uint8_t* codes, float* costs) {
  for (int64_t i = 0; i < count; ++i) {
    if (changed_[i] == kOver) continue;
    const uint8_t* const tried = current_.data() + i * books_;
    uint8_t* const best = codes + i * books_;
    const bool same = std::equal(tried, tried + books_, best);
    const float cost = same ? costs[i] : engine.cost(i, tried);
    if (same || cost < costs[i]) {
      minima_.add_best(i, tried, marks_[i], is_local_minimum(i));
      costs[i] = cost;
      std::copy_n(tried, books_, best);
    } else if (is_local_minimum(i)) {
      minima_.add(i, tried, marks_[i]);
    }
  }
}

void LocalSearch::run(IcmEngine& engine, const int64_t* numbers, int64_t count, uint8_t* codes, float* costs,
                      const std::function<void(int64_t)>& after_round) {
  for (int64_t i = 0; i < count; ++i) costs[i] = engine.cost(i, codes + i * books_);
  minima_.clear();
  for (int64_t done = 0; done < plan_.rounds; ++done) {
    const int64_t round = plan_.from_round + done;
    start_round(numbers, round, count, codes);
    int32_t now = 0;
    for (int64_t s = 0; s < plan_.sweeps; ++s) {
      order_books(plan_, round, s, books_, order_);
      if (!sweep(engine, count, &now)) break;
    }
    end_round(engine, count, codes, costs);
    if (after_round) after_round(done + 1);
  }
}

}  // namespace kith
