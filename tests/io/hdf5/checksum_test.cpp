#include "io/hdf5/checksum.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace kith {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// From the comments of lookup3.c by its author.
TEST(Hdf5Checksum, IsLookup3) {
  EXPECT_EQ(hdf5_checksum({}), 0xdeadbeefU);
  EXPECT_EQ(hdf5_checksum(bytes_of("Four score and seven years ago")), 0x17770551U);
  EXPECT_TRUE(matches_hdf5_checksum({}, 0xdeadbeefU));
  EXPECT_FALSE(matches_hdf5_checksum({}, 0xdeadbeeeU));
}

// By hand: words 0x0102 and 0x0300, sums 0x0102, 0x0402, and of these 0x0504.
TEST(Fletcher32, SumsBigEndianWords) {
  const std::string bytes{'\x01', '\x02', '\x03'};
  EXPECT_TRUE(matches_fletcher32(bytes_of(bytes), 0x05040402U));
  EXPECT_TRUE(matches_fletcher32(bytes_of(bytes), 0x04050204U)) << "as before libhdf5 1.6.3";
  EXPECT_FALSE(matches_fletcher32(bytes_of(bytes), 0x05040403U));
  EXPECT_FALSE(matches_fletcher32(bytes_of(bytes), 0x05050402U));
}

TEST(Fletcher32, ASumOfZeroHasTwoForms) {
  const std::string ones(2, '\xff');
  EXPECT_TRUE(matches_fletcher32(bytes_of(ones), 0xffffffffU));
  EXPECT_TRUE(matches_fletcher32(bytes_of(ones), 0));
  EXPECT_TRUE(matches_fletcher32({}, 0));
}

// Long enough for the sums to be reduced several times.
TEST(Fletcher32, OfManyBytes) {
  const std::string many(100'000, '\xfe');
  uint64_t sum = 0;
  uint64_t sums = 0;
  for (size_t i = 0; i < many.size() / 2; ++i) {
    sum = (sum + 0xfefe) % 65535;
    sums = (sums + sum) % 65535;
  }
  EXPECT_TRUE(matches_fletcher32(bytes_of(many), static_cast<uint32_t>(sums << 16 | sum)));
}

}  // namespace
}  // namespace kith
