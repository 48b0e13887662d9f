#include "io/hdf5/dataset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace kith {
namespace {

using namespace std::string_view_literals;

// Messages of version 1: class and version, three bytes of flags, the size, then the bits that are used. For integers
// these are their offset and number; for floats also where exponent and mantissa lie, and the exponent's bias.
struct Encoding {
  ElementType element;
  std::string_view message;
};
constexpr std::array kEncodings{
    Encoding{ElementType::f32, "\x11\x20\x1f\x00\x04\x00\x00\x00\x00\x00\x20\x00\x17\x08\x00\x17\x7f\x00\x00\x00"sv},
    Encoding{ElementType::f16, "\x11\x20\x0f\x00\x02\x00\x00\x00\x00\x00\x10\x00\x0a\x05\x00\x0a\x0f\x00\x00\x00"sv},
    Encoding{ElementType::u8, "\x10\x00\x00\x00\x01\x00\x00\x00\x00\x00\x08\x00"sv},
    Encoding{ElementType::i8, "\x10\x08\x00\x00\x01\x00\x00\x00\x00\x00\x08\x00"sv},
    Encoding{ElementType::i32, "\x10\x08\x00\x00\x04\x00\x00\x00\x00\x00\x20\x00"sv},
    Encoding{ElementType::i64, "\x10\x08\x00\x00\x08\x00\x00\x00\x00\x00\x40\x00"sv},
};

constexpr int64_t kInteger = 0;
constexpr int64_t kFloat = 1;
constexpr int64_t kBigEndian = 0x01;
constexpr int64_t kSigned = 0x08;
constexpr int64_t kPadding = 0x06;  // of bits that are not used, where all are

bool is_size_taken(int64_t type_class, int64_t bytes) {
  return std::any_of(kEncodings.begin(), kEncodings.end(), [&](const Encoding& known) {
    return (known.message[0] & 0x0f) == type_class && known.message[4] == bytes;
  });
}

// What a number of a size that is taken has otherwise, from the message behind its head.
std::string how_it_differs(int64_t type_class, int64_t bytes, Hdf5Cursor bits) {
  if ((type_class != kInteger && type_class != kFloat) || !is_size_taken(type_class, bytes)) return "";
  const int64_t offset = bits.u16();
  const int64_t used = bits.u16();
  if (type_class == kInteger) {
    return used == 8 * bytes ? "" : fmt::format(" with {} bits in use from bit {}", used, offset);
  }
  bits.skip(1);
  const int64_t exponent = bits.u8();
  bits.skip(1);
  const int64_t mantissa = bits.u8();
  const bool bfloat16 = used == 16 && exponent == 8 && mantissa == 7;
  return fmt::format(" with {} bits of exponent and {} of mantissa{}", exponent, mantissa,
                     bfloat16 ? " (bfloat16)" : "");
}

std::string_view remedy(int64_t type_class, int64_t flags) {
  if (type_class == kFloat) return "; store x.astype('<f4')";
  if (type_class != kInteger) return "";
  return (flags & kBigEndian) != 0 ? "; store x.astype(x.dtype.newbyteorder('<'))"
                                   : "; store vectors as x.astype('u1') or x.astype('<f4'), ids as x.astype('<i8')";
}

// `bits` is what follows the head of the message.
std::string why_refused(int64_t type_class, int64_t flags, int64_t bytes, const Hdf5Cursor& bits) {
  const std::string_view order = (flags & kBigEndian) != 0 ? "big-endian " : "";
  constexpr std::array kNames{"",
                              "",
                              "times",
                              "strings",
                              "bit fields",
                              "opaque values",
                              "compound values",
                              "references",
                              "an enumeration (booleans, perhaps)",
                              "sequences",
                              "arrays"};
  const bool is_signed = (flags & kSigned) != 0;
  const std::string different = order.empty() ? how_it_differs(type_class, bytes, bits) : "";
  switch (type_class) {
    case kInteger:
      return fmt::format("{}-bit {}{}integers{}", 8 * bytes, order, is_signed ? "" : "unsigned ", different);
    case kFloat: return fmt::format("{}-bit {}floating-point numbers{}", 8 * bytes, order, different);
    default: break;
  }
  return type_class < static_cast<int64_t>(kNames.size()) ? kNames[static_cast<size_t>(type_class)]
                                                          : "values that are not numbers";
}

}  // namespace

ElementType parse_datatype(const Hdf5Source& source, Hdf5Cursor message) {
  constexpr int64_t kHeadBytes = 8;
  const int64_t at = message.at();
  Hdf5Cursor whole = message;
  const int64_t type_class = message.u8() & 0x0f;  // what the version changes concerns other classes
  const int64_t flags = message.u8();
  message.skip(2);
  const int64_t bytes = message.u32();
  std::string given(whole.text(std::min(whole.left(), kHeadBytes + 12)));
  given[0] = static_cast<char>(type_class | 0x10);
  given[1] = static_cast<char>(flags & ~kPadding);
  for (const auto& [element, encoding] : kEncodings) {
    if (given.starts_with(encoding)) return element;
  }
  source.refused(
      at, fmt::format("the dataset holds {}; supported are float32, float16, uint8 and int8 for vectors and int32 "
                      "and int64 for ids, little-endian{}",
                      why_refused(type_class, flags, bytes, message), remedy(type_class, flags)));
}

std::string make_datatype(ElementType element) {
  for (const auto& [known, encoding] : kEncodings) {
    if (known == element) return std::string(encoding);
  }
  return "";
}

}  // namespace kith
