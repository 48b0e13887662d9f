#include "core/half.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace kith {
namespace {

TEST(Half, EveryValueComesBackFromF32) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Half half{static_cast<uint16_t>(bits)};
    const auto value = static_cast<float>(half);
    const bool nan = (bits & 0x7FFF) > 0x7C00;
    ASSERT_EQ(std::isnan(value), nan) << bits;
    if (nan) continue;
    ASSERT_EQ(half_of(value).bits, bits);
  }
}

TEST(Half, ValuesAreThoseOfTheFormat) {
  for (uint32_t bits = 0; bits < 0x7C00; ++bits) {
    const int exponent = static_cast<int>(bits >> 10);
    const double fraction = bits & 0x3FF;
    const double expected = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    ASSERT_EQ(static_cast<double>(Half{static_cast<uint16_t>(bits)}), expected) << bits;
  }
  EXPECT_EQ(static_cast<float>(Half{0xFC00}), -std::numeric_limits<float>::infinity());
}

TEST(Half, RoundsToTheNearestAndTiesToEven) {
  for (uint32_t bits = 0; bits + 1 < 0x7C00; ++bits) {
    const double low = static_cast<double>(Half{static_cast<uint16_t>(bits)});
    const double high = static_cast<double>(Half{static_cast<uint16_t>(bits + 1)});
    const auto middle = static_cast<float>((low + high) / 2);  // exact in f32
    const uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(half_of(middle).bits, even);
    ASSERT_EQ(half_of(-middle).bits, even | 0x8000);
    ASSERT_EQ(half_of(std::nextafter(middle, 0.0f)).bits, bits);
    ASSERT_EQ(half_of(std::nextafter(middle, 1e9f)).bits, bits + 1);
  }
  EXPECT_EQ(half_of(65519.99f).bits, 0x7BFF);
  EXPECT_EQ(half_of(65520.0f).bits, 0x7C00);
  EXPECT_EQ(half_of(std::numeric_limits<float>::infinity()).bits, 0x7C00);
  EXPECT_TRUE(std::isnan(static_cast<float>(half_of(std::nanf("")))));
}

TEST(BFloat16, RoundsToTheNearestAndTiesToEven) {
  for (uint32_t bits = 0; bits + 1 < 0x7F80; ++bits) {
    const uint32_t middle = bits << 16 | 0x8000;
    const uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(bfloat16_of(float_of_bits(bits << 16)).bits, bits);
    ASSERT_EQ(bfloat16_of(float_of_bits(middle)).bits, even);
    ASSERT_EQ(bfloat16_of(float_of_bits(middle - 1)).bits, bits);
    ASSERT_EQ(bfloat16_of(float_of_bits(middle + 1)).bits, bits + 1);
  }
  EXPECT_EQ(bfloat16_of(std::numeric_limits<float>::max()).bits, 0x7F80);
  EXPECT_TRUE(std::isnan(static_cast<float>(bfloat16_of(float_of_bits(0x7F800001u)))));
}

}  // namespace
}  // namespace kith
