#include "io/formats.hpp"

#include <kith/error.hpp>

#include "io/thrown.hpp"

#include <gtest/gtest.h>

using namespace std::string_literals;

namespace kith {
namespace {

using testing::expect_corrupt;
using testing::expect_refusal;

FileLayout parse(const std::string& head, ElementType element = ElementType::f32) {
  return parse_bin_header(head, element, "v.fbin");
}

TEST(BinHeader, ReadsRowsThenColumns) {
  const FileLayout layout = parse("\x03\x02\x01\x00\x80\x00\x00\x00"s, ElementType::u8);
  EXPECT_EQ(layout.element, ElementType::u8);
  EXPECT_EQ(layout.rows, 0x010203);
  EXPECT_EQ(layout.cols, 128);
  EXPECT_EQ(layout.data_offset, 8);
  EXPECT_EQ(layout.file_bytes(), 8 + int64_t{0x010203} * 128);
}

TEST(BinHeader, WritesWhatItReads) {
  EXPECT_EQ(make_bin_header(0x010203, 128, "v.fbin"), "\x03\x02\x01\x00\x80\x00\x00\x00"s);
  EXPECT_EQ(make_bin_header(UINT32_MAX, UINT32_MAX, "v.fbin"), std::string(8, '\xff'));
}

TEST(BinHeader, EndsTooEarly) {
  for (size_t length = 0; length < 8; ++length) {
    expect_corrupt([&] { parse(std::string(length, '\x01')); }, "v.fbin", static_cast<int64_t>(length),
                   "ends inside its header");
  }
}

TEST(BinHeader, RefusesImpossibleShapes) {
  expect_corrupt([] { parse(std::string(8, '\xff')); }, "v.fbin", 0,
                 "4294967295 x 4294967295 f32, more bytes than a file can have");
  expect_corrupt([] { parse("\x05\x00\x00\x00\x00\x00\x00\x00"s); }, "v.fbin", 0, "5 rows of 0 columns");
  EXPECT_EQ(parse("\x00\x00\x00\x00\x00\x00\x00\x00"s).rows, 0);
  EXPECT_EQ(parse("\x00\x00\x00\x00\x07\x00\x00\x00"s).cols, 7);
}

TEST(BinHeader, CountsNoFurtherThanUint32) {
  const int64_t too_many = int64_t{UINT32_MAX} + 1;
  expect_refusal<InvalidArgument>([&] { make_bin_header(too_many, 1, "v.fbin"); },
                                  "'v.fbin' cannot hold 4294967296 x 1");
  expect_refusal<InvalidArgument>([&] { make_bin_header(1, too_many, "v.fbin"); }, "counts up to 4294967295");
}

}  // namespace
}  // namespace kith
