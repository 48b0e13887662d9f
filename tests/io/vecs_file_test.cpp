// .fvecs, .bvecs and .ivecs: their bytes, rows of other lengths, and where damage is seen.
#include "io/formats.hpp"

#include <kith/error.hpp>
#include <kith/vector_file.hpp>

#include "io/temporary_directory.hpp"
#include "io/thrown.hpp"

#include <gtest/gtest.h>

#include <vector>

using namespace std::string_literals;

namespace kith {
namespace {

using testing::expect_corrupt;
using testing::expect_refusal;
using testing::TemporaryDirectory;

// A row of a .bvecs file: its header promises `promised` columns, `value` stands `held` times.
std::string row(int promised, size_t held, char value) {
  return std::string{static_cast<char>(promised), static_cast<char>(promised >> 8), 0, 0} + std::string(held, value);
}

auto opening_vecs(const std::string& path) {
  return [path] { VectorFile file(path); };
}

TEST(VecsFile, WritesAHeaderBeforeEveryRow) {
  const TemporaryDirectory directory;
  const uint8_t bytes[] = {1, 2, 3, 4, 5, 6};
  write_vectors(directory.path("v.bvecs"), MatrixView(bytes, 2, 3));
  EXPECT_EQ(directory.read("v.bvecs"), "\x03\0\0\0\x01\x02\x03\x03\0\0\0\x04\x05\x06"s);
  const float values[] = {1.0F, -2.0F};
  write_vectors(directory.path("v.fvecs"), MatrixView(values, 2, 1));
  EXPECT_EQ(directory.read("v.fvecs"), "\x01\0\0\0\0\0\x80\x3f\x01\0\0\0\0\0\0\xc0"s);
  IdFileWriter writer(directory.path("i.ivecs"), 1, 2);
  const int64_t ids[] = {-1, 7};
  writer.append(ids, 1);
  writer.commit();
  EXPECT_EQ(directory.read("i.ivecs"), "\x02\0\0\0\xff\xff\xff\xff\x07\0\0\0"s);
}

TEST(VecsFile, AnEmptyFileHasNeitherRowsNorColumns) {
  const TemporaryDirectory directory;
  for (const char* name : {"v.fvecs", "v.bvecs"}) {
    const std::string path = directory.write(name, "");
    EXPECT_EQ(VectorFile(path).rows(), 0);
    EXPECT_EQ(VectorFile(path).cols(), 0);
    EXPECT_EQ(read_vectors(path).rows(), 0);
  }
  EXPECT_EQ(IdFile(directory.write("i.ivecs", "")).rows(), 0);
}

TEST(VecsFile, OpeningSeesWhatTheSizeAndTheEndsTell) {
  const TemporaryDirectory directory;
  const std::string whole = row(3, 3, 'a') + row(3, 3, 'b');
  const std::string cut = directory.write("cut.bvecs", whole.substr(0, 13));
  expect_corrupt(opening_vecs(cut), cut, 7, "but 6 bytes remain after the last whole row");
  const std::string trailing = directory.write("more.bvecs", whole + "x");
  expect_corrupt(opening_vecs(trailing), trailing, 14, "but 1 bytes remain");
  const std::string header = directory.write("header.bvecs", whole.substr(0, 3));
  expect_corrupt(opening_vecs(header), header, 3, "ends inside the header of its first row");
  const std::string none = directory.write("none.fvecs", "\0\0\0\0"s);
  expect_corrupt(opening_vecs(none), none, 0, "the first row has 0 columns");
  const std::string negative = directory.write("negative.fvecs", "\xff\xff\xff\xff\0\0\0\0"s);
  expect_corrupt(opening_vecs(negative), negative, 0, "the first row has -1 columns");
  const std::string huge = directory.write("huge.fvecs", "\xff\xff\xff\x7f\0\0\0\0"s);
  expect_corrupt(opening_vecs(huge), huge, 0, "rows of 2147483647 columns take 8589934592 bytes each");
  const std::string last = directory.write("last.bvecs", row(3, 3, 'a') + row(3, 3, 'b') + row(2, 3, 'c'));
  expect_corrupt(opening_vecs(last), last, 14, "row 2 has 2 columns, the rows before it have 3");
}

TEST(VecsFile, ReadingSeesARowOfAnotherLength) {
  const TemporaryDirectory directory;
  std::string bytes;
  for (int i = 0; i < 20; ++i) bytes += row(i == 11 ? 9 : 3, 3, static_cast<char>(i));
  const std::string path = directory.write("v.bvecs", bytes);
  const VectorFile file(path);
  std::vector<uint8_t> out(60);
  file.read(0, MutableMatrixView(out.data(), 11, 3));
  EXPECT_EQ(out[32], 10);
  file.read(12, MutableMatrixView(out.data(), 8, 3));
  EXPECT_EQ(out[0], 12);
  expect_corrupt([&] { file.read(11, MutableMatrixView(out.data(), 1, 3)); }, path, 77, "row 11 has 9 columns");
  expect_corrupt([&] { file.read(0, MutableMatrixView(out.data(), 20, 3)); }, path, 77, "row 11 has 9 columns");
}

TEST(VecsFile, ReadingSeesALongRowOfAnotherLength) {
  constexpr int64_t kCols = 50000;  // more than a piece
  const TemporaryDirectory directory;
  const std::string sound = "\x50\xc3\0\0"s + std::string(kCols, 'x');
  const std::string other = "\x51\xc3\0\0"s + std::string(kCols, 'y');
  const std::string path = directory.write("v.bvecs", sound + other + sound);
  const VectorFile file(path);
  ASSERT_EQ(file.cols(), kCols);
  std::vector<float> out(kCols);
  file.read(2, MutableMatrixView(out.data(), 1, kCols));
  EXPECT_EQ(out[kCols - 1], 'x');
  expect_corrupt([&] { file.read(1, MutableMatrixView(out.data(), 1, kCols)); }, path, kCols + 4,
                 "row 1 has 50001 columns, the rows before it have 50000");
}

TEST(VecsFile, AFileThatShrinksWhileItIsOpen) {
  const TemporaryDirectory directory;
  const std::string path = directory.write("v.bvecs", row(3, 3, 'a') + row(3, 3, 'b'));
  const VectorFile file(path);
  std::filesystem::resize_file(path, 9);
  std::vector<uint8_t> out(6);
  expect_corrupt([&] { file.read(0, MutableMatrixView(out.data(), 2, 3)); }, path, 9, "was shortened");
}

TEST(VecsFile, WritersRefuseTooManyColumns) {
  const TemporaryDirectory directory;
  expect_refusal<InvalidArgument>(
      [&] { VectorFileWriter writer(directory.path("v.bvecs"), DType::u8, 1, int64_t{1} << 31); },
      "counts up to 2147483647");
  EXPECT_TRUE(directory.names().empty());
}

}  // namespace
}  // namespace kith
