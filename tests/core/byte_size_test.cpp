#include "core/byte_size.hpp"

#include <gtest/gtest.h>

namespace kith {
namespace {

TEST(ByteSize, FormatsInTheLargestWholeUnit) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1 KiB");
  EXPECT_EQ(format_bytes(int64_t{3} << 29), "1.5 GiB");
  EXPECT_EQ(format_bytes(INT64_MAX), "8 EiB");
}

TEST(ByteSize, RoundsUpWhereLessWouldNotDo) {
  EXPECT_EQ(format_bytes_up(1000), "1000 B");
  EXPECT_EQ(format_bytes_up(1024), "1 KiB");
  EXPECT_EQ(format_bytes_up(1025), "1.001 KiB");
  EXPECT_EQ(format_bytes_up((int64_t{123} << 20) + 1), "123.1 MiB");
  EXPECT_EQ(format_bytes_up((int64_t{1000} << 20) + 1), "1001 MiB");
  EXPECT_EQ(format_bytes_up(int64_t{3} << 29), "1.5 GiB");
}

TEST(ByteSize, MultiplicationStopsAtTheLargestNumber) {
  EXPECT_EQ(saturating_multiply(0, INT64_MAX), 0);
  EXPECT_EQ(saturating_multiply(1, INT64_MAX), INT64_MAX);
  EXPECT_EQ(saturating_multiply(3, INT64_MAX / 2), INT64_MAX);
  EXPECT_EQ(saturating_multiply(1 << 20, 1 << 20), int64_t{1} << 40);
}

}  // namespace
}  // namespace kith
