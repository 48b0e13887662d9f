// Indexes, codecs and transforms in .kith files: what is saved is loaded, in the bytes of the golden files, and every
// damaged file is an error that says where.
#include "index/index_file.hpp"

#include <kith/error.hpp>

#include "index/index_parts_check.hpp"
#include "index/parts_data.hpp"
#include "io/temporary_directory.hpp"
#include "io/thrown.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace kith {
namespace {

using testing::expect_refusal;
using testing::make_parts;

const Resources& resources() {
  static const Resources shared;
  return shared;
}

std::string golden(const std::string& name) { return std::string(KITH_GOLDEN) + "/kith/" + name + ".kith"; }

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<TransformParts> sample_transforms() { return std::move(make_parts("transformed_flat").transforms); }

TEST(IndexFile, GoldenFilesAreReadAndWrittenInTheSameBytes) {
  const testing::TemporaryDirectory directory;
  for (const std::string& kind : testing::kinds_of_parts()) {
    SCOPED_TRACE(kind);
    const IndexParts parts = load_parts(golden(kind), resources());
    testing::expect_same(parts, make_parts(kind));
    save_parts(parts, directory.path("again"), resources());
    EXPECT_TRUE(directory.read("again") == content(golden(kind))) << "other bytes";
  }
}

TEST(IndexFile, GoldenCodecsAndTransformsToo) {
  const testing::TemporaryDirectory directory;
  for (const std::string& kind : testing::kinds_of_codecs()) {
    SCOPED_TRACE(kind);
    const QuantizerParts read = load_codec(golden("codec_" + kind), resources());
    const CodecParts& codec = read.codec;
    const CodecParts expected = testing::make_codec(kind);
    EXPECT_EQ(codec.values, expected.values);
    EXPECT_EQ(codec.format.bytes(), expected.format.bytes());
    save_codec(read, directory.path("again"), resources());
    EXPECT_TRUE(directory.read("again") == content(golden("codec_" + kind))) << "other bytes";
  }
  const SavedTransforms read = load_transforms(golden("transforms"), resources());
  testing::expect_same(read.transforms, sample_transforms());
  save_transforms(read, directory.path("again"), resources());
  EXPECT_TRUE(directory.read("again") == content(golden("transforms"))) << "other bytes";
}

TEST(IndexFile, AnotherKindOfFileIsRefusedByName) {
  expect_refusal<InvalidArgument>([&] { load_parts(golden("codec_pq4"), resources()); }, "holds a quantizer");
  expect_refusal<InvalidArgument>([&] { load_codec(golden("flat"), resources()); }, "holds an index");
  expect_refusal<InvalidArgument>([&] { load_parts(std::string(KITH_GOLDEN) + "/faiss/ivf_pq.faiss", resources()); },
                                  "kith.read_faiss");
}

TEST(IndexFile, AFileThatIsCutAnywhereSaysSo) {
  const testing::TemporaryDirectory directory;
  const std::string whole = content(golden("codes_pq4"));
  ASSERT_GT(whole.size(), 4096U);
  // Every length at the front, where the table is, and at the end; between them there is one array or padding.
  for (size_t length = 0; length < whole.size(); length += length < 800 || length + 300 > whole.size() ? 1 : 97) {
    const std::string path = directory.overwrite("cut.kith", whole.substr(0, length));
    const auto error = testing::thrown<CorruptFile>([&] { load_parts(path, resources()); });
    ASSERT_TRUE(error) << length;
    EXPECT_EQ(error->offset(), static_cast<int64_t>(length == 0 ? 0 : length)) << error->what();
  }
}

TEST(IndexFile, EveryFlippedBitIsFound) {
  const testing::TemporaryDirectory directory;
  const std::string whole = content(golden("everything"));
  for (size_t at = 0; at < whole.size(); at += at < 1500 ? 1 : 61) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << at % 8));
    const std::string path = directory.overwrite("damaged.kith", damaged);
    try {
      load_parts(path, resources());
      FAIL() << "byte " << at << " may be anything";
    } catch (const CorruptFile&) {
    } catch (const Unsupported& error) {  // the version
      EXPECT_TRUE(at >= 8 && at < 12) << error.what();
    }
  }
}

TEST(IndexFile, AnotherVersionIsNamed) {
  const testing::TemporaryDirectory directory;
  std::string bytes = content(golden("flat"));
  bytes[8] = 3;
  const std::string path = directory.write("later.kith", bytes);
  expect_refusal<Unsupported>([&] { load_parts(path, resources()); }, "version 3; this Kith reads versions 1 to 2");
}

// What version 1 can say is written as version 1, so that these files stay as they are.
TEST(IndexFile, ParametersNeedVersion2) {
  EXPECT_EQ(content(golden("flat"))[8], 1);
  EXPECT_EQ(content(golden("parameters"))[8], 2);
}

TEST(IndexFile, TooSmallALimitIsOutOfMemory) {
  ResourceOptions options;
  options.host_memory_limit = 64;
  EXPECT_THROW(load_parts(golden("lists_pq8"), Resources(options)), OutOfMemory);
}

// Parts that do not fit together are refused when they are saved, and so can be in no file of Kith's.
template <typename Change>
void expect_problem(const std::string& kind, const std::string& section, const Change& change) {
  IndexParts parts = make_parts(kind);
  change(parts);
  const auto error = testing::thrown<PartsProblem>([&] { check_parts(parts, resources()); });
  if (!error) return;
  EXPECT_EQ(error->section(), section) << error->what();
}

template <typename T>
PartArray<T> changed(const PartArray<T>& values, int64_t at, T value) {
  HostArray<T> copy(values.size(), "a test", resources());
  std::copy(values.begin(), values.end(), copy.begin());
  copy[at] = value;
  return copy;
}

TEST(IndexPartsCheck, WhatDoesNotFitTogetherIsNamed) {
  const auto lists = [](IndexParts& parts) -> ListParts& { return *parts.lists; };
  expect_problem("ids", "offsets", [&](IndexParts& p) { lists(p).offsets = changed<int64_t>(lists(p).offsets, 0, 1); });
  expect_problem("ids", "offsets",
                 [&](IndexParts& p) { lists(p).offsets = changed<int64_t>(lists(p).offsets, 2, 99); });
  expect_problem("ids", "offsets",
                 [&](IndexParts& p) { lists(p).offsets = changed<int64_t>(lists(p).offsets, 4, 22); });
  expect_problem("ids", "offsets", [&](IndexParts& p) { lists(p).offsets = {}; });
  expect_problem("ids", "rows", [&](IndexParts& p) { lists(p).rows = changed<uint32_t>(lists(p).rows, 22, 23); });
  expect_problem("ids", "rows", [&](IndexParts& p) { lists(p).rows = changed<uint32_t>(lists(p).rows, 0, 1); });
  expect_problem("ids", "rows", [&](IndexParts& p) { lists(p).rows = changed<uint32_t>(lists(p).rows, 1, 0); });
  expect_problem("ids", "codes", [&](IndexParts& p) { lists(p).codes = {}; });
  expect_problem("ids", "codes", [&](IndexParts& p) {  // a NaN
    lists(p).codes = changed<uint8_t>(changed<uint8_t>(lists(p).codes, 3, 0x7f), 2, 0xff);
  });
  expect_problem("codes_pq4", "codes",
                 [&](IndexParts& p) { lists(p).codes = changed<uint8_t>(lists(p).codes, 1, 0x10); });
  expect_problem("ids", "centres", [&](IndexParts& p) { lists(p).centres = PartMatrix(); });
  expect_problem("lists_sq8", "codec", [&](IndexParts& p) { lists(p).codec.values.pop_back(); });
  expect_problem("lists_sq8", "codec", [&](IndexParts& p) { lists(p).codec.values.back() = -1; });
  expect_problem("lists_pq8", "codec", [&](IndexParts& p) { lists(p).codec.values[0] = INFINITY; });
  expect_problem("lists_pq8", "about", [&](IndexParts& p) { lists(p).codec.format.bits = 9; });
  expect_problem("lists_pq8", "about", [&](IndexParts& p) { lists(p).codec.format.parts = 4; });
  expect_problem("lists_pq8", "about", [&](IndexParts& p) { p.metric = Metric::l1; });
  expect_problem("lists_pq8", "about", [&](IndexParts& p) { p.rows = -1; });
  expect_problem("lists_pq8", "about", [&](IndexParts& p) { p.next_id = 3; });
  expect_problem("lists_pq8", "about", [&](IndexParts& p) { p.factory = "a\nb"; });
  expect_problem("ids", "ids", [&](IndexParts& p) { p.ids = changed<int64_t>(p.ids, 0, -2); });
  expect_problem("ids", "ids", [&](IndexParts& p) { p.ids = changed<int64_t>(p.ids, 0, p.ids[5]); });
  expect_problem("flat", "flat", [&](IndexParts& p) { p.flat.clear(); });
  expect_problem("flat", "about", [&](IndexParts& p) { p.metric = Metric::hamming; });
  expect_problem("transformed_flat", "about", [&](IndexParts& p) { p.transforms.erase(p.transforms.begin() + 2); });
  expect_problem("transformed_flat", "transform.3.matrix", [&](IndexParts& p) { p.transforms[3].matrix[1] = NAN; });
  expect_problem("transformed_flat", "transform.0.offset", [&](IndexParts& p) { p.transforms[0].offset.clear(); });
  expect_problem("refined", "refine.codes", [&](IndexParts& p) { p.refine->codes = {}; });
  expect_problem("refined", "about", [&](IndexParts& p) { p.refine->factor = NAN; });
  expect_problem("refined", "about", [&](IndexParts& p) { p.refine->factor = 3e38F; });
}

TEST(PartData, IsMovedWhereItIsOwnedAndCopiedWhereItIsShared) {
  HostArray<int64_t> values(3, "a test", resources());
  std::fill(values.begin(), values.end(), 7);
  const int64_t* const place = values.data();
  const HostArray<int64_t> moved = PartArray<int64_t>(std::move(values)).take("a test", resources());
  EXPECT_EQ(moved.data(), place);
  const HostArray<int64_t> copied = PartArray<int64_t>({moved.data(), 3}, nullptr).take("a test", resources());
  EXPECT_NE(copied.data(), place);
  EXPECT_EQ(copied[2], 7);
}

}  // namespace
}  // namespace kith
