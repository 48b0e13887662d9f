#include "io/hdf5/filters.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace kith {
namespace {

// "!" where it is damaged.
std::string unpack(const std::string& packed, size_t room = 100) {
  std::string out(room, '?');
  const int64_t made = unpack_lzf(std::as_bytes(std::span(packed.data(), packed.size())),
                                  std::as_writable_bytes(std::span(out.data(), out.size())));
  return made < 0 ? "!" : out.substr(0, static_cast<size_t>(made));
}

TEST(Lzf, UnpacksPlainBytesAndCopies) {
  EXPECT_EQ(unpack(""), "");
  EXPECT_EQ(unpack(std::string("\x02"
                               "abc")),
            "abc");
  EXPECT_EQ(unpack(std::string("\x02"
                               "abc\x20\x02",
                               6)),
            "abcabc");  // three bytes from three back
  EXPECT_EQ(unpack(std::string("\x00"
                               "a\xe0\x03\x00",
                               5)),
            "a" + std::string(12, 'a'));  // a long copy of itself
}

TEST(Lzf, DamageIsNoted) {
  EXPECT_EQ(unpack(std::string("\x05"
                               "abc")),
            "!");  // too few plain bytes
  EXPECT_EQ(unpack(std::string("\x02"
                               "abc\x20",
                               5)),
            "!");  // no distance
  EXPECT_EQ(unpack(std::string("\x02"
                               "abc\xe0\x01",
                               6)),
            "!");  // no distance behind the rest of the length
  EXPECT_EQ(unpack(std::string("\x02"
                               "abc\x20\x03",
                               6)),
            "!");  // from before the beginning
  EXPECT_EQ(unpack(std::string("\x02"
                               "abc"),
                   2),
            "!");
  EXPECT_EQ(unpack(std::string("\x02"
                               "abc\x20\x02",
                               6),
                   5),
            "!");
}

}  // namespace
}  // namespace kith
