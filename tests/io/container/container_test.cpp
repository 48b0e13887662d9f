// The .kith container: sections come back as they were given, at their places, and tables that lie are errors.
#include "io/container/container_file.hpp"

#include <kith/error.hpp>

#include "io/container/xxh3.hpp"
#include "io/temporary_directory.hpp"
#include "io/thrown.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

namespace kith {
namespace {

const Resources& resources() {
  static const Resources shared;
  return shared;
}

template <typename T>
ContainerWriter::Piece piece(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

template <typename T>
void put(std::string& bytes, size_t at, T value) {
  std::memcpy(&bytes[at], &value, sizeof(value));
}

// A right hash for a header and a table that were changed.
void seal(std::string& bytes) {
  uint32_t sections = 0;
  std::memcpy(&sections, &bytes[12], sizeof(sections));
  Xxh3 hash;
  hash.update(std::as_bytes(std::span(bytes)).first(56));
  const size_t table = std::min(bytes.size() - 64, size_t{sections} * 96);
  hash.update(std::as_bytes(std::span(bytes)).subspan(64, table));
  put(bytes, 56, hash.digest());
}

struct Written {
  testing::TemporaryDirectory directory;
  std::string bytes;

  Written() {
    const std::vector<float> floats{1, 2, 3, 4, 5, 6};
    const std::vector<int64_t> numbers{7, 8};
    ContainerWriter writer("test");
    writer.add("floats", SectionType::f32, {2, 3}, {piece(floats).first(8), {}, piece(floats).subspan(8)});
    writer.add("none", SectionType::u8, {0, 5}, {});
    writer.add("numbers", SectionType::i64, {2}, {piece(numbers)});
    writer.write(directory.path("x.kith"), resources());
    bytes = directory.read("x.kith");
  }
  std::string changed(std::string other, bool sealed = true) const {
    if (sealed) seal(other);
    return directory.write("y.kith", other);
  }
};

TEST(Container, SectionsComeBack) {
  const Written written;
  const ContainerFile file(written.directory.path("x.kith"));
  EXPECT_EQ(file.kind(), "test");
  ASSERT_EQ(file.sections().size(), 3U);
  const Section* const floats = file.find("floats");
  ASSERT_NE(floats, nullptr);
  EXPECT_EQ(floats->shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(floats->offset, 4096);
  std::vector<float> values(6);
  file.read(*floats, values.data(), resources());
  EXPECT_EQ(values, (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(file.find("numbers")->offset, 8192);
  EXPECT_EQ(file.find("none")->bytes, 0);
  EXPECT_EQ(file.find("other"), nullptr);
  EXPECT_EQ(written.bytes.size(), 8192U + 16U);
}

TEST(Container, TablesThatLieAreErrorsEvenWithARightHash) {
  const Written written;
  const auto expect = [&](size_t at, auto value, const std::string& reason) {
    std::string bytes = written.bytes;
    put(bytes, at, value);
    const std::string path = written.changed(bytes);
    testing::expect_refusal<CorruptFile>([&] { const ContainerFile file(path); }, reason);
  };
  constexpr size_t kTable = 64;
  expect(12, uint32_t{1000}, "larger than the file");
  expect(12, uint32_t{2}, "there must be zeros");
  expect(16, int64_t{1} << 40, "it was cut");
  expect(16, int64_t{-5}, "promises");
  expect(16, int64_t{100}, "promises 100 bytes");
  expect(24, uint64_t{1}, "zeros");
  expect(32, 'T', "does not say what");
  expect(48, uint64_t{1}, "zeros");
  expect(kTable, '/', "no proper name");
  expect(kTable + 20, 'x', "no proper name");
  expect(kTable + 32, uint32_t{10}, "unknown type");
  expect(kTable + 36, uint32_t{5}, "unknown type or number of axes");
  expect(kTable + 40, int64_t{-1}, "impossible shape");
  expect(kTable + 40, INT64_MAX, "not those of its shape");
  expect(kTable + 56, int64_t{1}, "impossible shape");
  expect(kTable + 72, int64_t{8192}, "does not begin where");
  expect(kTable + 80, int64_t{25}, "not those of its shape");
  expect(4096 + 24, 'x', "there must be zeros");
  // Two sections of one name.
  std::string bytes = written.bytes;
  bytes.replace(kTable + 96, 32, bytes.substr(kTable, 32));
  const std::string path = written.changed(bytes);
  testing::expect_refusal<CorruptFile>([&] { const ContainerFile file(path); }, "two sections 'floats'");
}

TEST(Container, SectionsOutsideOfTheFileAreErrors) {
  const Written written;
  std::string bytes = written.bytes;
  constexpr size_t kLast = 64 + 2 * 96;
  put(bytes, kLast + 40, int64_t{3});
  put(bytes, kLast + 80, int64_t{24});
  const std::string path = written.changed(bytes);
  testing::expect_refusal<CorruptFile>([&] { const ContainerFile file(path); }, "not inside of the file");
}

TEST(Container, DamageIsFoundWhereItIs) {
  const Written written;
  std::string bytes = written.bytes;
  bytes[8192 + 3] = 'x';
  const ContainerFile file(written.changed(bytes, false));
  int64_t values[2];
  testing::expect_corrupt([&] { file.read(*file.find("numbers"), values, resources()); }, file.path(), 8192,
                          "section 'numbers': its bytes are damaged");
  bytes[70] = 'x';
  const std::string path = written.changed(bytes, false);
  testing::expect_corrupt([&] { const ContainerFile again(path); }, path, 56, "the table of sections is damaged");
}

TEST(Container, OtherFilesAreToldApart) {
  const testing::TemporaryDirectory directory;
  const auto refused = [&](const std::string& bytes) {
    return [path = directory.write("z.kith", bytes)] { const ContainerFile file(path); };
  };
  testing::expect_refusal<CorruptFile>(refused("Lorem ipsum dolor sit amet"), "no .kith file");
  testing::expect_refusal<CorruptFile>(refused(""), "it was cut");
  testing::expect_refusal<CorruptFile>(refused("\x89KIT"), "it was cut");
  testing::expect_refusal<InvalidArgument>(refused(std::string("IwPQ\x10\0\0\0", 8)), "kith.read_faiss");
}

TEST(Container, WhatCannotBeASectionIsRefused) {
  ContainerWriter writer("test");
  const std::vector<float> one{1};
  EXPECT_THROW(writer.add("", SectionType::f32, {1}, {piece(one)}), InvalidArgument);
  EXPECT_THROW(writer.add("Upper", SectionType::f32, {1}, {piece(one)}), InvalidArgument);
  EXPECT_THROW(writer.add(std::string(33, 'a'), SectionType::f32, {1}, {piece(one)}), InvalidArgument);
  EXPECT_THROW(writer.add("a", SectionType::f32, {2}, {piece(one)}), InvalidArgument);
  EXPECT_THROW(ContainerWriter("No"), InvalidArgument);
}

// From the reference implementation, xxHash 0.8.1, of the bytes 0, 1, 2, ... modulo 251.
TEST(Xxh3, GivesTheReferencesHashes) {
  struct Vector {
    size_t size;
    uint64_t hash;
  };
  constexpr Vector kVectors[] = {
      {0, 0x2d06800538d394c2},    {1, 0xc44bdff4074eecdb},    {3, 0x5f4299fc161c9cbb},    {4, 0x60dab036a58211f2},
      {8, 0x3a1c2d7c85af88f8},    {9, 0xe9612598145bb9dc},    {16, 0x8355e3a6f61770db},   {17, 0x9ef341a99de37328},
      {32, 0x3523581fe96e4c05},   {33, 0xe68c56ba88991e58},   {64, 0x6187eb9089b0ed55},   {65, 0x6928c76ce90422d0},
      {96, 0x278a3e12ea046dfb},   {97, 0xe7220282dc4e14f4},   {128, 0x85c6174c7ff4c46b},  {129, 0xec7642b431ba3e5a},
      {144, 0x028e1e35ff4c0a01},  {239, 0x972b14e3c46f214b},  {240, 0x375a384d957fe865},  {241, 0x02e8cd95421c6d02},
      {255, 0x074191baf9c49567},  {512, 0x5c021aac13954143},  {1023, 0xd3d91d80ac495685}, {1024, 0xe5d78bafa45b2aa5},
      {1025, 0xe95c42288f28186e}, {1088, 0x1a848d807034c403}, {1089, 0xa51e35ec282cb1d8}, {2047, 0xc95eaacd676cd049},
      {2048, 0x25339063db861586}, {2049, 0x6c9600c0e506e2ae}, {5000, 0xb418500fc42320ee},
  };
  std::vector<uint8_t> bytes(5000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i % 251);
  for (const auto& [size, hash] : kVectors) {
    const auto input = std::as_bytes(std::span(bytes)).first(size);
    EXPECT_EQ(xxh3(input), hash) << size;
    for (const size_t step : {1, 63, 1000, 1024, 1025}) {
      Xxh3 pieces;
      for (size_t at = 0; at < size; at += step) pieces.update(input.subspan(at, std::min(step, size - at)));
      EXPECT_EQ(pieces.digest(), hash) << size << " in pieces of " << step;
    }
  }
}

}  // namespace
}  // namespace kith
