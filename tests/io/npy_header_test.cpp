// The .npy header parser against headers as numpy writes them, and against everything it must refuse.
#include "io/formats.hpp"

#include <kith/error.hpp>

#include "io/thrown.hpp"

#include <gtest/gtest.h>

using namespace std::string_literals;

namespace kith {
namespace {

using testing::expect_corrupt;
using testing::expect_refusal;

const std::string kPath = "some/array.npy";

// As numpy 2.4 saves numpy.zeros((3, 4), 'float32'), byte for byte.
const std::string kNumpyF32 = "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }"s +
                              std::string(58, ' ') + "\n";

std::string version_1(const std::string& text) {
  const std::string length{static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  return "\x93NUMPY\x01\x00"s + length + text;
}

std::string version_2(const std::string& text, char major = 2) {
  const std::string length{static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8), 0, 0};
  return "\x93NUMPY"s + major + '\0' + length + text;
}

std::string dictionary(const std::string& descr, const std::string& order, const std::string& shape) {
  return "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}

FileLayout parse(const std::string& head) { return parse_npy_header(head, kPath); }

// A text that must be CorruptFile at the first occurrence of `at`, or at its end where that is empty.
void expect_bad_text(const std::string& text, const std::string& at, const std::string& reason) {
  const std::string head = version_1(text);
  expect_corrupt([&] { parse(head); }, kPath, static_cast<int64_t>(at.empty() ? head.size() : head.find(at, 10)),
                 reason);
}

TEST(NpyHeader, ReadsWhatNumpyWrites) {
  ASSERT_EQ(kNumpyF32.size(), 128U);
  const FileLayout layout = parse(kNumpyF32);
  EXPECT_EQ(layout.element, ElementType::f32);
  EXPECT_EQ(layout.rows, 3);
  EXPECT_EQ(layout.cols, 4);
  EXPECT_EQ(layout.data_offset, 128);
}

TEST(NpyHeader, ReadsMasksAndListsAsOneColumn) {
  for (const auto& [name, element] : {std::pair("'|b1'", ElementType::u8), std::pair("'|u1'", ElementType::u8),
                                      std::pair("'<i4'", ElementType::i32), std::pair("'<i8'", ElementType::i64)}) {
    const FileLayout layout = parse(version_1(dictionary(name, "False", "(12,)")));
    EXPECT_EQ(layout.element, element);
    EXPECT_EQ(layout.rows, 12);
    EXPECT_EQ(layout.cols, 1);
  }
  for (const char* shape : {"(12, 1)", "(1, 12)"}) {
    EXPECT_EQ(parse(version_1(dictionary("'|b1'", "False", shape))).element, ElementType::u8);
  }
  const std::string weights = version_1(dictionary("'<f4'", "False", "(12,)"));
  expect_refusal<InvalidArgument>([&] { parse(weights); }, "1 dimensions");
  EXPECT_EQ(parse_npy_header(weights, kPath, OneAxis::of_all).rows, 12);
  EXPECT_EQ(parse_npy_header(weights, kPath, OneAxis::of_all).cols, 1);
  expect_refusal<InvalidArgument>([] { parse(version_1(dictionary("'|b1'", "False", "(12, 2)"))); }, "dtype is '|b1'");
  expect_refusal<InvalidArgument>([] { parse(version_1(dictionary("'|i1'", "False", "(12,)"))); }, "1 dimensions");
}

TEST(NpyHeader, ReadsEveryElementInEveryVersion) {
  for (const ElementTraits& traits : kElementTraits) {
    if (traits.npy_name.empty()) continue;
    const std::string text = dictionary("'" + std::string(traits.npy_name) + "'", "False", "(70000, 784)");
    for (const std::string& head : {version_1(text), version_2(text), version_2(text, 3)}) {
      const FileLayout layout = parse(head + "values that are none of the parser's business");
      EXPECT_EQ(layout.element, traits.element);
      EXPECT_EQ(layout.rows, 70000);
      EXPECT_EQ(layout.cols, 784);
      EXPECT_EQ(layout.data_offset, static_cast<int64_t>(head.size()));
    }
  }
}

TEST(NpyHeader, TakesAnyOrderSpaceAndQuotes) {
  for (const std::string& text : {
           "{\"shape\":(3,4),\"fortran_order\":False,\"descr\":\"<f4\"}"s,
           "  {'shape' : ( 3 , 4 , ) ,\n\t'descr' : '<f4' , 'fortran_order' : False , } \r\n"s,
           "{'descr': '<f4', 'fortran_order': False, 'shape': (3L, 4L), }"s,
       }) {
    const FileLayout layout = parse(version_1(text));
    EXPECT_EQ(layout.rows, 3) << text;
    EXPECT_EQ(layout.cols, 4) << text;
  }
}

TEST(NpyHeader, WritesWhatItReads) {
  EXPECT_EQ(make_npy_header(ElementType::f32, 3, 4), kNumpyF32);
  for (const ElementTraits& traits : kElementTraits) {
    if (traits.npy_name.empty()) continue;
    for (const int64_t rows : {int64_t{0}, int64_t{1}, int64_t{1} << 31, int64_t{1} << 52}) {
      const std::string header = make_npy_header(traits.element, rows, 96);
      EXPECT_EQ(header.size() % 64, 0U);
      const FileLayout layout = parse(header);
      EXPECT_EQ(layout.element, traits.element);
      EXPECT_EQ(layout.rows, rows);
      EXPECT_EQ(layout.cols, 96);
      EXPECT_EQ(layout.data_offset, static_cast<int64_t>(header.size()));
    }
  }
}

TEST(NpyHeader, EndsTooEarly) {
  for (size_t length = 0; length < kNumpyF32.size(); ++length) {
    expect_corrupt([&] { parse(kNumpyF32.substr(0, length)); }, kPath, static_cast<int64_t>(length),
                   "ends inside its header");
  }
}

TEST(NpyHeader, RefusesWrongMagicAndVersion) {
  expect_corrupt([] { parse("PK\x03\x04 an .npz is a zip archive"); }, kPath, 0, "does not begin with");
  for (const std::string& version : {"\x00\x00"s, "\x01\x01"s, "\x04\x00"s, "\xff\x00"s}) {
    std::string head = kNumpyF32;
    expect_corrupt([&] { parse(head.replace(6, 2, version)); }, kPath, 6, "known are 1.0, 2.0 and 3.0");
  }
}

TEST(NpyHeader, RefusesALyingLength) {
  const std::string head = "\x93NUMPY\x02\x00\xff\xff\xff\xff{'descr'"s;
  expect_corrupt([&] { parse(head); }, kPath, 8, "a header of 4294967307 bytes; at most 65536 are read");
}

TEST(NpyHeader, RefusesMalformedText) {
  expect_bad_text("", "", "'{' was expected in the header, not its end");
  expect_bad_text("(3, 4)", "(", "'{' was expected in the header, not '('");
  expect_bad_text("{}", "{", "the header lacks one of the keys");
  expect_bad_text("{'descr': '<f4', 'shape': (3, 4)}", "{", "the header lacks one of the keys");
  expect_bad_text("{'descr': '<f4', 'colour': 3}", "'colour'", "unknown key 'colour'");
  expect_bad_text("{'descr': '<f4', \"descr\": '<f4'}", "\"descr\"", "appears twice");
  expect_bad_text("{'descr' '<f4'}", "'<f4'", "':' was expected");
  expect_bad_text("{'descr': '<f4' 'shape': (3, 4)}", "'shape'", "'}' was expected");
  expect_bad_text("{'descr': \"<f4'", "", "the end of a string");
  expect_bad_text("{'descr': '\\x3cf4'}", "\\", "without escapes");
  expect_bad_text("{'descr': 4}", "4", "a string was expected");
  expect_bad_text("{'descr': [('a', '<f4')", "", "a closing bracket was expected");
  expect_bad_text("{'fortran_order': 0}", "0", "True or False was expected");
  expect_bad_text(dictionary("'<f4'", "False", "(3, 4)") + "x", "x", "nothing more was expected");
  expect_bad_text(dictionary("'<f4'", "False", "(3, 4)") + "\0"s, "\0"s, "not '?'");
}

TEST(NpyHeader, RefusesMalformedShapes) {
  const auto with_shape = [](const std::string& shape) { return dictionary("'<f4'", "False", shape); };
  expect_bad_text(with_shape("3"), "3", "'(' was expected");
  expect_bad_text(with_shape("(3)"), ")", "',' was expected");
  expect_bad_text(with_shape("(-3, 4)"), "-", "a number of at least 0 was expected");
  expect_bad_text(with_shape("(3, , 4)"), ", 4)", "a number of at least 0 was expected");
  expect_bad_text(with_shape("(3.0, 4)"), ".0", "',' was expected");
  expect_bad_text(with_shape("(9223372036854775808, 4)"), "9223372036854775808", "too large for any array");
  expect_bad_text(with_shape("(9223372036854775807, 4)"), "(92", "more bytes than a file can have");
  expect_bad_text(with_shape("(4611686018427387904, 1)"), "(46", "more bytes than a file can have");
  expect_bad_text(with_shape("(0, 4611686018427387904)"), "(0,", "more bytes than a file can have");
  expect_bad_text(with_shape("(3, 0)"), "(3,", "3 rows of 0 columns");
}

TEST(NpyHeader, TakesNoRows) {
  EXPECT_EQ(parse(version_1(dictionary("'<f4'", "False", "(0, 128)"))).cols, 128);
  EXPECT_EQ(parse(version_1(dictionary("'<f4'", "False", "(0, 0)"))).rows, 0);
}

TEST(NpyHeader, SaysWhichDtypeItRefuses) {
  const auto refuse = [](const std::string& descr, const std::string& reason) {
    const std::string head = version_1(dictionary(descr, "False", "(3, 4)"));
    expect_refusal<InvalidArgument>([&] { parse(head); }, reason);
    expect_refusal<InvalidArgument>([&] { parse(head); }, "'" + kPath + "', byte 20: ");
  };
  refuse("'<f8'", "dtype is '<f8'; save x.astype('float32')");
  refuse("'<f16'", "dtype is '<f16'; ");
  refuse("'|V2'", "dtype is '|V2'; raw bytes are not supported; bfloat16 has no dtype in .npy files");
  refuse("'>f4'", "dtype is '>f4'; big-endian values are not supported");
  refuse("'|O'", "dtype is '|O'; arrays of Python objects are not supported");
  refuse("'<u8'", "dtype is '<u8'; save vectors as float32, float16, uint8 or int8 and ids as int32");
  refuse("'|b1'", "dtype is '|b1'; ");
  refuse("'\x01\x7f\xff'",
         "dtype is '?"
         "?"
         "?'; ");
  refuse("'" + std::string(5000, 'f') + "'", std::string(60, 'f') + "...'");
  refuse("[('a', '<f4'), ('b]', '<i4', (2,))]",
         "dtype is '[('a', '<f4'), ('b]', '<i4', (2,))]'; structured arrays are not supported");
  refuse(std::string(20000, '[') + std::string(20000, ']'), "structured arrays are not supported");
}

TEST(NpyHeader, RefusesOtherOrdersAndDimensions) {
  expect_refusal<InvalidArgument>([] { parse(version_1(dictionary("'<f4'", "True", "(3, 4)"))); }, "Fortran order");
  expect_refusal<InvalidArgument>([] { parse(version_1(dictionary("'<f4'", "False", "()"))); }, "0 dimensions");
  expect_refusal<InvalidArgument>([] { parse(version_1(dictionary("'<f4'", "False", "(12,)"))); }, "1 dimensions");
  expect_refusal<InvalidArgument>([] { parse(version_1(dictionary("'<f4'", "False", "(3, 4, 1)"))); }, "3 dimensions");
}

}  // namespace
}  // namespace kith
