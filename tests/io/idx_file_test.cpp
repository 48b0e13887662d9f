// IDX files, plain and in gzip: shapes, what is refused, and reads in any order from a stream that only goes forward.
#include "io/formats.hpp"

#include <kith/error.hpp>
#include <kith/vector_file.hpp>

#include "io/needs_zlib.hpp"
#include "io/temporary_directory.hpp"
#include "io/thrown.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>
#include <vector>

using namespace std::string_literals;

namespace kith {
namespace {

using testing::expect_corrupt;
using testing::expect_refusal;
using testing::TemporaryDirectory;
using testing::thrown;

constexpr int64_t kGzipHeader = 10;

std::string header(char type, const std::vector<uint32_t>& axes) {
  std::string bytes{0, 0, type, static_cast<char>(axes.size())};
  for (const uint32_t axis : axes) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(axis >> shift);
  }
  return bytes;
}

std::string little_endian(uint32_t value, int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

uint32_t crc_of(const std::string& content) {
  uint32_t crc = 0xffffffffU;
  for (const char c : content) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1U) != 0 ? 0xedb88320U : 0U);
  }
  return ~crc;
}

// A gzip member that holds its content as it is, in blocks of at most 1000 bytes.
std::string gzip(const std::string& content) {
  std::string bytes = "\x1f\x8b\x08\0\0\0\0\0\0\xff"s;
  size_t done = 0;
  do {
    const std::string block = content.substr(done, 1000);
    done += block.size();
    const auto length = static_cast<uint32_t>(block.size());
    bytes += static_cast<char>(done == content.size() ? 1 : 0);
    bytes += little_endian(length, 2) + little_endian(~length, 2) + block;
  } while (done < content.size());
  return bytes + little_endian(crc_of(content), 4) + little_endian(static_cast<uint32_t>(content.size()), 4);
}

std::string counting(size_t count) {
  std::string bytes(count, '\0');
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>(i * 7 % 251);
  return bytes;
}

auto opening_idx(const std::string& path) {
  return [path] { VectorFile file(path); };
}

TEST(IdxFile, FlattensTheAxesBehindTheFirst) {
  const auto shape = [](const std::string& head) {
    const FileLayout layout = parse_idx_header(head, "x");
    return std::tuple(layout.rows, layout.cols, layout.data_offset, layout.element);
  };
  EXPECT_EQ(shape(header(8, {60000, 28, 28})), std::tuple(60000, 784, 16, ElementType::u8));
  EXPECT_EQ(shape(header(8, {60000})), std::tuple(60000, 1, 8, ElementType::u8));
  EXPECT_EQ(shape(header(9, {3, 5})), std::tuple(3, 5, 12, ElementType::i8));
  EXPECT_EQ(shape(header(8, {2, 3, 4, 5})), std::tuple(2, 60, 20, ElementType::u8));
  EXPECT_EQ(shape(header(8, {0, 0})), std::tuple(0, 0, 12, ElementType::u8));
}

TEST(IdxFile, RefusesWrongHeaders) {
  const auto parse = [](const std::string& head) { return [head] { parse_idx_header(head, "x"); }; };
  expect_corrupt(parse(""), "x", 0, "ends inside its header");
  expect_corrupt(parse(header(8, {1, 2}).substr(0, 11)), "x", 11, "its header, which has 12 bytes");
  expect_corrupt(parse("\x01\0\x08\x01"s), "x", 0, "two zero bytes");
  expect_corrupt(parse(header(7, {1})), "x", 2, "unknown type of values 0x07");
  expect_corrupt(parse(header(8, {0xffffffffU, 0xffffffffU, 0xffffffffU})), "x", 4, "more bytes than a file can have");
  expect_corrupt(parse(header(8, {5, 0})), "x", 4, "5 rows of 0 columns");
  for (const char type : {0x0b, 0x0c, 0x0d, 0x0e}) {
    expect_refusal<InvalidArgument>(parse(header(type, {1})), "big-endian numbers of several bytes");
  }
  expect_refusal<InvalidArgument>(parse(header(8, {})), "0 axes; supported are 1 to 4");
  expect_refusal<InvalidArgument>(parse(header(8, {1, 1, 1, 1, 1})), "5 axes");
}

TEST(IdxFile, ReadsPlainAndCompressedAlike) {
  const TemporaryDirectory directory;
  const std::string content = header(8, {50, 10, 20}) + counting(10000);
  std::vector<std::string> paths{directory.write("a-idx3-ubyte", content), directory.write("b.idx3-ubyte.gz", content)};
  if (testing::built_with_zlib()) {
    paths.push_back(directory.write("c-idx3-ubyte.gz", gzip(content)));
    paths.push_back(directory.write("d-idx3-ubyte", gzip(content)));  // the content tells, not the name
    paths.push_back(directory.write("e-idx3-ubyte.gz", gzip(content.substr(0, 3000)) + gzip(content.substr(3000))));
  }
  for (const std::string& path : paths) {
    const VectorFile file(path);
    EXPECT_EQ(file.dtype(), DType::u8);
    EXPECT_EQ(file.rows(), 50);
    EXPECT_EQ(file.cols(), 200);
    EXPECT_EQ(content_of(path), FileContent::vectors);
    const MatrixBuffer all = read_vectors(path);
    EXPECT_EQ(std::string(static_cast<const char*>(all.view().data()), 10000), content.substr(16)) << path;
    std::vector<float> part(600);
    for (const int64_t first : {47, 0, 20, 19, 47}) {
      file.read(first, MutableMatrixView(part.data(), 3, 200));
      EXPECT_EQ(part[599], static_cast<float>((first * 200 + 599) * 7 % 251)) << path << " from " << first;
    }
  }
}

TEST(IdxFile, ACompressedFileServesManyThreads) {
  KITH_NEEDS_ZLIB();
  const TemporaryDirectory directory;
  const std::string path = directory.write("a-idx3-ubyte.gz", gzip(header(8, {100, 30}) + counting(3000)));
  const VectorFile file(path);
  std::vector<int> failures(4, 0);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < failures.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int64_t i = 0; i < 100; ++i) {
        const int64_t row = (i * 37 + static_cast<int64_t>(t) * 11) % 100;
        std::vector<uint8_t> out(30);
        file.read(row, MutableMatrixView(out.data(), 1, 30));
        if (out[29] != (row * 30 + 29) * 7 % 251) ++failures[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, std::vector<int>(4, 0));
}

TEST(IdxFile, WrongSizes) {
  const TemporaryDirectory directory;
  const std::string content = header(8, {5, 10}) + counting(50);
  const std::string cut = directory.write("cut-idx3-ubyte", content.substr(0, 61));
  expect_corrupt(opening_idx(cut), cut, 61, "5 x 10 u8 after a header of 12 bytes need 62 bytes");
  const std::string more = directory.write("more-idx3-ubyte", content + "xx");
  expect_corrupt(opening_idx(more), more, 62, "2 bytes follow after 5 x 10 u8");
}

TEST(IdxFile, DamagedCompressedFiles) {
  KITH_NEEDS_ZLIB();
  const TemporaryDirectory directory;
  const std::string content = header(8, {5, 10}) + counting(50);
  const std::string packed = gzip(content);
  const auto size = static_cast<int64_t>(packed.size());
  const auto write = [&](const std::string& bytes) { return directory.write("a-idx3-ubyte.gz", bytes); };
  const auto reading = [](const std::string& path) { return [path] { read_vectors(path); }; };

  expect_corrupt(opening_idx(write(packed.substr(0, 12))), directory.path("a-idx3-ubyte.gz"), 12,
                 "ends here, before it is complete");
  std::string path = write(packed.substr(0, packed.size() - 20));
  expect_corrupt(reading(path), path, size - 20, "ends here, before it is complete");
  path = write(packed.substr(0, packed.size() - 3));
  expect_corrupt(reading(path), path, size - 3, "ends here, before it is complete");
  std::string wrong = packed;
  wrong[packed.size() - 8] ^= 1;
  path = write(wrong);
  EXPECT_THAT(thrown<CorruptFile>(reading(path))->what(), ::testing::HasSubstr("incorrect data check"));
  path = write(packed + "junk");
  EXPECT_THAT(thrown<CorruptFile>(reading(path))->what(), ::testing::HasSubstr("damaged"));
  path = write(gzip(content + "x"));
  EXPECT_THAT(thrown<CorruptFile>(reading(path))->what(), ::testing::HasSubstr("more data follows"));
  path = write(gzip(content.substr(0, 60)));
  EXPECT_THAT(thrown<CorruptFile>(reading(path))->what(), ::testing::HasSubstr("the content ends after 60 bytes"));
  path = write(gzip(header(8, {1U << 20, 1U << 10})));
  EXPECT_THAT(thrown<CorruptFile>(opening_idx(path))->what(),
              ::testing::HasSubstr("bytes cannot unpack to the 1073741836"));
  wrong = packed;
  wrong[kGzipHeader] = 7;  // a kind of block that there is not
  path = write(wrong);
  EXPECT_THAT(thrown<CorruptFile>(opening_idx(path))->what(), ::testing::HasSubstr("invalid block type"));
}

TEST(IdxFile, ReadsOnAfterAnError) {
  KITH_NEEDS_ZLIB();
  const TemporaryDirectory directory;
  std::string packed = gzip(header(8, {300, 10}) + counting(3000));
  const std::string path = directory.write("a-idx3-ubyte.gz", packed.substr(0, 2500));
  const VectorFile file(path);
  std::vector<uint8_t> out(10);
  EXPECT_THROW(file.read(299, MutableMatrixView(out.data(), 1, 10)), CorruptFile);
  file.read(100, MutableMatrixView(out.data(), 1, 10));
  EXPECT_EQ(out[3], 1003 * 7 % 251);
}

TEST(IdxFile, IsOnlyRead) {
  const TemporaryDirectory directory;
  const uint8_t value = 1;
  expect_refusal<InvalidArgument>([&] { write_vectors(directory.path("a-idx3-ubyte"), MatrixView(&value, 1, 1)); },
                                  "IDX files are only read");
  expect_refusal<InvalidArgument>([&] { IdFileWriter writer(directory.path("a-idx1-ubyte.gz"), 1, 1); },
                                  "cannot hold ids");
  EXPECT_TRUE(directory.names().empty());
}

}  // namespace
}  // namespace kith
