#include "core/random.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace kith {
namespace {

// The known answers of Philox4x32-10 for counters and keys of all zeros and all ones.
TEST(CounterRng, GivesThePublishedNumbers) {
  const Random4 zeros = CounterRng(0, 0).block(0);
  EXPECT_EQ(zeros.word[0], 0x6627e8d5u);
  EXPECT_EQ(zeros.word[1], 0xe169c58du);
  EXPECT_EQ(zeros.word[2], 0xbc57ac4cu);
  EXPECT_EQ(zeros.word[3], 0x9b00dbd8u);
  const Random4 ones = CounterRng(~0ull, ~0ull).block(~0ull);
  EXPECT_EQ(ones.word[0], 0x408f276du);
  EXPECT_EQ(ones.word[1], 0x41c83b0eu);
  EXPECT_EQ(ones.word[2], 0xa20bc7c6u);
  EXPECT_EQ(ones.word[3], 0x6d5451fdu);
}

static_assert(CounterRng(1, 2).word(5) == CounterRng(1, 2).block(1).word[1], "numbers are made at compile time too");

TEST(CounterRng, SeedsAndStreamsDiffer) {
  std::set<uint32_t> seen;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    for (uint64_t stream = 0; stream < 10; ++stream) seen.insert(CounterRng(seed, stream).word(0));
  }
  EXPECT_EQ(seen.size(), 100u);
}

TEST(CounterRng, IsUniform) {
  const CounterRng rng(7, 1);
  double sum = 0;
  std::vector<int> count(10);
  constexpr int kDraws = 100000;
  for (uint64_t i = 0; i < kDraws; ++i) {
    const float u = rng.uniform(i);
    ASSERT_GE(u, 0.0f);
    ASSERT_LT(u, 1.0f);
    sum += u;
    ++count[rng.below(i, 10)];
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.005);
  for (const int c : count) EXPECT_NEAR(c, kDraws / 10, 5 * std::sqrt(kDraws / 10.0));
}

TEST(CounterRng, BelowStaysBelow) {
  const CounterRng rng(3, 3);
  for (const uint32_t bound : {1u, 2u, 3u, 0x80000000u, 0xFFFFFFFFu}) {
    for (uint64_t i = 0; i < 1000; ++i) ASSERT_LT(rng.below(i, bound), bound);
  }
}

}  // namespace
}  // namespace kith
