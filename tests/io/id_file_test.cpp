// Id files: int64 in memory whatever the file holds, and nothing that would not come back the same.
#include <kith/vector_file.hpp>

#include <kith/error.hpp>

#include "io/temporary_directory.hpp"
#include "io/thrown.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>
#include <vector>

namespace kith {
namespace {

using testing::expect_refusal;
using testing::TemporaryDirectory;

void write_ids(const std::string& path, const std::vector<int64_t>& ids, int64_t cols) {
  const int64_t rows = static_cast<int64_t>(ids.size()) / cols;
  IdFileWriter writer(path, rows, cols);
  writer.append(ids.data(), rows);
  writer.commit();
}

std::vector<int64_t> read_ids(const std::string& path, int64_t first, int64_t count) {
  const IdFile file(path);
  std::vector<int64_t> ids(static_cast<size_t>(count * file.cols()));
  file.read(first, count, ids.data());
  return ids;
}

const std::vector<std::string> kIdNames{"i.ibin", "i.ivecs", "i.npy", "i.hdf5::neighbors"};

TEST(IdFile, RoundTripsInAllFormats) {
  const TemporaryDirectory directory;
  std::vector<int64_t> ids(30000);  // more than are converted at once
  std::iota(ids.begin(), ids.end(), -1);
  for (const std::string& name : kIdNames) {
    const std::string path = directory.path(name);
    write_ids(path, ids, 10);
    const IdFile file(path);
    EXPECT_EQ(file.path(), path);
    EXPECT_EQ(file.rows(), 3000);
    EXPECT_EQ(file.cols(), 10);
    EXPECT_EQ(read_ids(path, 0, 3000), ids);
    EXPECT_EQ(read_ids(path, 7, 2), std::vector<int64_t>(ids.begin() + 70, ids.begin() + 90));
    EXPECT_EQ(content_of(path), FileContent::ids);
    expect_refusal<InvalidArgument>([&] { read_ids(path, 2999, 2); }, "'" + path + "' has 3000");
  }
}

TEST(IdFile, WritesTheBytesOfTheFormat) {
  const TemporaryDirectory directory;
  write_ids(directory.path("i.ibin"), {-1, 0x01020304}, 2);
  EXPECT_EQ(directory.read("i.ibin"), std::string("\x01\0\0\0\x02\0\0\0\xff\xff\xff\xff\x04\x03\x02\x01", 16));
}

TEST(IdFile, ReadsAnNpyOfInt32) {
  const TemporaryDirectory directory;
  const std::string text = "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 1), }\n";
  const std::string path = directory.write("i.npy", std::string("\x93NUMPY\x01\0", 8) + static_cast<char>(text.size()) +
                                                        '\0' + text + std::string("\xff\xff\xff\xff\x05\0\0\0", 8));
  EXPECT_EQ(read_ids(path, 0, 2), (std::vector<int64_t>{-1, 5}));
  EXPECT_EQ(content_of(path), FileContent::ids);
  expect_refusal<InvalidArgument>([&] { VectorFile file(path); }, "'" + path + "' holds ids (i32), not vectors");
}

TEST(IdFile, Int32FilesRefuseLargeIdsAndWriteNothingOfThatPiece) {
  const TemporaryDirectory directory;
  const std::vector<int64_t> good{-1, 0, INT32_MAX, 7};
  for (const int64_t large : {int64_t{INT32_MAX} + 1, INT64_MAX, int64_t{INT32_MIN} - 1}) {
    const std::string path = directory.path(large == INT64_MAX ? "i.ivecs" : "i.ibin");
    std::vector<int64_t> bad = good;
    bad[3] = large;
    IdFileWriter writer(path, 2, 2);
    expect_refusal<InvalidArgument>(
        [&] { writer.append(bad.data(), 2); },
        "id " + std::to_string(large) + " (row 1 of this piece, column 1) does not fit '" + path + "'");
    EXPECT_THROW(writer.commit(), InvalidState);
    EXPECT_FALSE(std::filesystem::exists(path));
    writer.append(good.data(), 2);
    writer.commit();
    EXPECT_EQ(read_ids(path, 0, 2), good);
    std::filesystem::remove(path);
  }
  write_ids(directory.path("i.npy"), {INT64_MAX, INT64_MIN}, 1);
  EXPECT_EQ(read_ids(directory.path("i.npy"), 0, 2), (std::vector<int64_t>{INT64_MAX, INT64_MIN}));
}

TEST(IdFile, HoldsNoRows) {
  const TemporaryDirectory directory;
  for (const std::string& name : kIdNames) {
    IdFileWriter writer(directory.path(name), 0, 10);
    writer.append(nullptr, 0);
    writer.commit();
    const IdFile file(directory.path(name));
    EXPECT_EQ(file.rows(), 0);
    EXPECT_EQ(file.cols(), name == "i.ivecs" ? 0 : 10);  // where only rows know of columns
    file.read(0, 0, nullptr);
  }
}

TEST(IdFile, RefusesNullPointersAndWrongCounts) {
  const TemporaryDirectory directory;
  const std::string path = directory.path("i.ibin");
  write_ids(path, {1, 2, 3, 4}, 2);
  expect_refusal<InvalidArgument>([&] { IdFile(path).read(0, 1, nullptr); }, "null pointer");
  IdFileWriter writer(path, 2, 2);
  const int64_t ids[6] = {};
  expect_refusal<InvalidArgument>([&] { writer.append(nullptr, 1); }, "null pointer");
  expect_refusal<InvalidArgument>([&] { writer.append(ids, 3); }, "has room for 2 more");
  expect_refusal<InvalidArgument>([&] { writer.append(ids, -1); }, "has room for 2 more");
}

RC_GTEST_PROP(IdFileProperty, AnyIdsRoundTrip, ()) {
  const TemporaryDirectory directory;
  const bool wide = *rc::gen::arbitrary<bool>();
  const int64_t cols = *rc::gen::inRange(1, 20);
  const int64_t rows = *rc::gen::inRange(1, 20);
  const auto count = static_cast<size_t>(rows * cols);
  std::vector<int64_t> ids;
  if (wide) {
    ids = *rc::gen::container<std::vector<int64_t>>(count, rc::gen::arbitrary<int64_t>());
  } else {
    const auto narrow = *rc::gen::container<std::vector<int32_t>>(count, rc::gen::arbitrary<int32_t>());
    ids.assign(narrow.begin(), narrow.end());
  }
  const std::string path = directory.path(wide ? "i.npy" : *rc::gen::element("i.ibin", "i.ivecs"));
  write_ids(path, ids, cols);
  RC_ASSERT(read_ids(path, 0, rows) == ids);
}

}  // namespace
}  // namespace kith
