#include "quantize/additive/local_search.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace kith {
namespace {

constexpr uint64_t kOrderStream = uint64_t{1} << 63;  // no row has this number

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

LocalSearch::LocalSearch(const LocalSearchPlan& plan, const Codebooks& books)
    : plan_(plan),
      books_(books.books),
      bits_(books.bits),
      current_(static_cast<size_t>(kIcmBlockRows * books_)),
      changed_(static_cast<size_t>(kIcmBlockRows)),
      looked_(static_cast<size_t>(kIcmBlockRows * books_)),
      active_(static_cast<size_t>(kIcmBlockRows)),
      found_(static_cast<size_t>(kIcmBlockRows)) {}

void LocalSearch::start_greedy(IcmEngine& engine, int64_t count, uint8_t* codes) {
  std::iota(active_.begin(), active_.end(), 0u);
  std::fill_n(codes, count * books_, uint8_t{0});
  for (int64_t k = 0; k < books_; ++k) {
    engine.step(k, IcmOthers::before, codes, active_.data(), count, found_.data());
    for (int64_t i = 0; i < count; ++i) codes[i * books_ + k] = found_[static_cast<size_t>(i)];
  }
}

void LocalSearch::sweep(IcmEngine& engine, int64_t count, int64_t* now) {
  for (const int64_t k : order_) {
    ++*now;
    int64_t active = 0;
    for (int64_t i = 0; i < count; ++i) {
      int64_t& looked = looked_[static_cast<size_t>(i * books_ + k)];
      if (changed_[static_cast<size_t>(i)] <= looked) continue;
      looked = *now;
      active_[static_cast<size_t>(active++)] = static_cast<uint32_t>(i);
    }
    if (active == 0) continue;
    engine.step(k, IcmOthers::all, current_.data(), active_.data(), active, found_.data());
    for (int64_t a = 0; a < active; ++a) {
      const int64_t i = active_[static_cast<size_t>(a)];
      uint8_t& code = current_[static_cast<size_t>(i * books_ + k)];
      if (code == found_[static_cast<size_t>(a)]) continue;
      code = found_[static_cast<size_t>(a)];
      changed_[static_cast<size_t>(i)] = *now;
    }
  }
}

void LocalSearch::run(IcmEngine& engine, const int64_t* numbers, int64_t count, uint8_t* codes, float* costs) {
  for (int64_t i = 0; i < count; ++i) costs[i] = engine.cost(i, codes + i * books_);
  for (int64_t round = plan_.from_round; round < plan_.from_round + plan_.rounds; ++round) {
    std::copy_n(codes, count * books_, current_.data());
    for (int64_t i = 0; i < count; ++i) {
      perturb_codes(plan_, numbers[i], round, books_, bits_, current_.data() + i * books_);
    }
    std::fill(changed_.begin(), changed_.end(), 0);
    std::fill(looked_.begin(), looked_.end(), -1);
    int64_t now = 0;
    for (int64_t s = 0; s < plan_.sweeps; ++s) {
      order_books(plan_, round, s, books_, order_);
      sweep(engine, count, &now);
    }
    for (int64_t i = 0; i < count; ++i) {
      const uint8_t* const tried = current_.data() + i * books_;
      uint8_t* const best = codes + i * books_;
      if (std::equal(tried, tried + books_, best)) continue;
      const float cost = engine.cost(i, tried);
      if (!(cost < costs[i])) continue;
      costs[i] = cost;
      std::copy_n(tried, books_, best);
    }
  }
}

}  // namespace kith
