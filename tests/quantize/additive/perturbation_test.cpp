#include "quantize/additive/local_search.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

namespace kith {
namespace {

TEST(Perturbation, ChoosesEachCodeEquallyOftenAndNeverMoreThanAsked) {
  constexpr int64_t kRows = 20000;
  LocalSearchPlan plan;
  plan.perturbed = 3;
  plan.seed = 4;
  std::array<int64_t, 7> times{};
  int64_t kept = 0;  // draws that gave the old code
  for (int64_t row = 0; row < kRows; ++row) {
    std::vector<uint8_t> codes(7, 9);
    perturb_codes(plan, row, 5, 7, 8, codes.data());
    int64_t changed = 0;
    for (size_t k = 0; k < 7; ++k) {
      times[k] += codes[k] != 9;
      changed += codes[k] != 9;
    }
    ASSERT_LE(changed, 3);
    kept += 3 - changed;
  }
  // 3 of 7 codes, each with 255 of 256 others: 8,538 of 20,000, standard deviation 70.
  for (const int64_t count : times) EXPECT_NEAR(count, 8538, 350);
  EXPECT_NEAR(kept, 3 * kRows / 256, 80);
}

TEST(Perturbation, DependsOnSeedRowAndRoundAlone) {
  LocalSearchPlan plan;
  const auto drawn = [&](uint64_t seed, int64_t row, int64_t round) {
    plan.seed = seed;
    std::vector<uint8_t> codes(15, 0);
    perturb_codes(plan, row, round, 15, 8, codes.data());
    return codes;
  };
  EXPECT_EQ(drawn(1, 2, 3), drawn(1, 2, 3));
  EXPECT_NE(drawn(1, 2, 3), drawn(2, 2, 3));
  EXPECT_NE(drawn(1, 2, 3), drawn(1, 3, 3));
  EXPECT_NE(drawn(1, 2, 3), drawn(1, 2, 4));
}

TEST(Perturbation, CodesKeepToTheirBits) {
  LocalSearchPlan plan;
  plan.perturbed = 6;
  for (int bits = 1; bits <= 8; ++bits) {
    std::vector<int> seen(256, 0);
    for (int64_t row = 0; row < 2000; ++row) {
      std::vector<uint8_t> codes(6);
      draw_codes(3, row, 6, bits, codes.data());
      for (const uint8_t code : codes) ++seen[code];
      perturb_codes(plan, row, 0, 6, bits, codes.data());
      for (const uint8_t code : codes) ++seen[code];
    }
    EXPECT_GT(*std::min_element(seen.begin(), seen.begin() + (1 << bits)), 0);
    EXPECT_EQ(std::count(seen.begin() + (1 << bits), seen.end(), 0), 256 - (1 << bits));
  }
}

TEST(SweepOrder, IsAsTheBooksAreOrDrawn) {
  LocalSearchPlan plan;
  std::vector<int64_t> order;
  order_books(plan, 3, 1, 5, order);
  EXPECT_EQ(order, (std::vector<int64_t>{0, 1, 2, 3, 4}));
  plan.random_order = true;
  std::array<std::array<int, 5>, 5> places{};
  for (int64_t round = 0; round < 2000; ++round) {
    order_books(plan, round, 2, 5, order);
    for (size_t i = 0; i < 5; ++i) ++places[i][static_cast<size_t>(order[i])];
    std::sort(order.begin(), order.end());
    ASSERT_EQ(order, (std::vector<int64_t>{0, 1, 2, 3, 4}));
  }
  for (const auto& place : places) {
    for (const int times : place) EXPECT_NEAR(times, 400, 100);
  }
}

}  // namespace
}  // namespace kith
