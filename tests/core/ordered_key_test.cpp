#include "core/ordered_key.hpp"

#include "core/ordered_number.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace kith {
namespace {

RC_GTEST_PROP(OrderedKey, KeepsTheOrderOfFloats, (uint32_t a, uint32_t b)) {
  const auto x = std::bit_cast<float>(a);
  const auto y = std::bit_cast<float>(b);
  RC_PRE(!std::isnan(x) && !std::isnan(y));
  RC_ASSERT((x < y) == (ordered_key(x) < ordered_key(y)));
  RC_ASSERT((x == y) == (ordered_key(x) == ordered_key(y)));
  RC_ASSERT(key_of_ordered(ordered_key(x)) == x);
  RC_ASSERT(ordered_number(x) == ordered_key(x));
  RC_ASSERT(number_of_ordered(ordered_key(x)) == x);
}

TEST(OrderedKey, ZerosAreOneAndNanComesAfterInfinity) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(ordered_key(-0.0f), ordered_key(0.0f));
  EXPECT_FALSE(std::signbit(key_of_ordered(ordered_key(-0.0f))));
  EXPECT_GT(ordered_key(NAN), ordered_key(kInfinity));
  EXPECT_EQ(ordered_key(-NAN), ordered_key(NAN));
  EXPECT_TRUE(std::isnan(key_of_ordered(ordered_key(NAN))));
  EXPECT_EQ(key_of_ordered(ordered_key(-kInfinity)), -kInfinity);
  for (const float key : {0.0f, -0.0f, kInfinity, -kInfinity}) {
    EXPECT_EQ(ordered_number(key), ordered_key(key));
    EXPECT_EQ(std::bit_cast<uint32_t>(number_of_ordered(ordered_key(key))),
              std::bit_cast<uint32_t>(key_of_ordered(ordered_key(key))));
  }
}

TEST(OrderedKey, EqualKeysGoToTheSmallerRowAndPaddingComesLast) {
  EXPECT_LT(pack_neighbor(ordered_key(1.0f), 3), pack_neighbor(ordered_key(1.0f), 4));
  EXPECT_LT(pack_neighbor(ordered_key(1.0f), 4), pack_neighbor(ordered_key(2.0f), 3));
  EXPECT_LT(pack_neighbor(ordered_key(NAN), 0x7FFFFFFF), kPadding);
}

}  // namespace
}  // namespace kith
