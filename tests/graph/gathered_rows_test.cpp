// Rows of a file that joins need: each at its place, few or many, again and again; sources that are read from front to back.
#include "graph/build/descent_on_disk/gathered_rows.hpp"

#include <kith/row_reader.hpp>
#include <kith/vector_file.hpp>

#include "graph/kept_graph.hpp"
#include "graph/lists/start_rules.hpp"
#include "io/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace kith {
namespace {

using testing::TemporaryDirectory;
using testing::under_limit;

constexpr int64_t kRows = 200'000;
constexpr int64_t kCols = 3;

float value_of(int64_t row, int64_t col) { return static_cast<float>(kCols * row + col); }

// Not a file: read by one thread.
class CountedRows final : public RowReader {
 public:
  const std::string& path() const override { return path_; }
  DType dtype() const override { return DType::f32; }
  int64_t rows() const override { return kRows; }
  int64_t cols() const override { return kCols; }
  void read_rows(int64_t first, int64_t count, void* out) const override {
    firsts.push_back(first);
    threads.insert(std::this_thread::get_id());
    for (int64_t i = 0; i < count * kCols; ++i) static_cast<float*>(out)[i] = static_cast<float>(first * kCols + i);
  }

  mutable std::vector<int64_t> firsts;
  mutable std::set<std::thread::id> threads;

 private:
  std::string path_ = "rows of a program";
};

std::vector<uint32_t> drawn(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint32_t> rows(static_cast<size_t>(count));
  for (uint32_t& row : rows) row = random() % kRows;
  rows.push_back(kNobody);
  return rows;
}

void expect_gathered(GatheredRows& gathered, const std::vector<uint32_t>& rows) {
  gathered.clear();
  ASSERT_TRUE(gathered.add(rows.data(), static_cast<int64_t>(rows.size())));
  gathered.load();
  std::set<uint32_t> wanted(rows.begin(), rows.end());
  wanted.erase(kNobody);
  ASSERT_EQ(gathered.view().rows(), static_cast<int64_t>(wanted.size()));
  uint32_t place = 0;
  for (const uint32_t row : wanted) {
    ASSERT_EQ(gathered.place_of(row), place);
    ASSERT_EQ(gathered.row_at(place), row);
    const auto* const values = reinterpret_cast<const float*>(gathered.view().row(place));
    for (int64_t col = 0; col < kCols; ++col) ASSERT_EQ(values[col], value_of(row, col));
    ++place;
  }
}

// Few rows are sorted, many counted by passes over all: either may follow the other.
TEST(GatheredRows, AreAtTheirPlacesFewOrMany) {
  const TemporaryDirectory directory;
  MatrixBuffer all(DType::f32, kRows, kCols, "rows", under_limit(kNoLimit));
  for (int64_t i = 0; i < kRows * kCols; ++i) reinterpret_cast<float*>(all.mutable_view().row(0))[i] = static_cast<float>(i);
  write_vectors(directory.path("x.npy"), all.view());
  const VectorFile file(directory.path("x.npy"));
  GatheredRows gathered(file, 50'000, under_limit(kNoLimit));
  uint32_t seed = 0;
  for (const int64_t count : {5, 40'000, 7, 1, 30, 100, 40'000, 20'000, 47, 48, 49, 2}) {
    SCOPED_TRACE(count);
    expect_gathered(gathered, drawn(count, ++seed));
  }
}

TEST(GatheredRows, WhatHasNoRoomIsNotAdded) {
  const VectorFile file(std::make_shared<CountedRows>());
  GatheredRows gathered(file, 10, under_limit(kNoLimit));
  std::vector<uint32_t> eight{5, 1, 70, 64, 199'999, 0, 63, 1000};
  gathered.clear();
  ASSERT_TRUE(gathered.add(eight.data(), 8));
  const std::vector<uint32_t> three{64, 2, 3, 4};  // of which 64 is there
  EXPECT_FALSE(gathered.add(three.data(), 4));
  gathered.load();
  EXPECT_EQ(gathered.view().rows(), 8);
  std::sort(eight.begin(), eight.end());
  for (uint32_t place = 0; place < 8; ++place) EXPECT_EQ(gathered.row_at(place), eight[place]);
  expect_gathered(gathered, three);
}

TEST(GatheredRows, SourcesThatAreNoPlainFilesAreReadFromFrontToBack) {
  const auto reader = std::make_shared<CountedRows>();
  const VectorFile file(reader);
  GatheredRows gathered(file, 50'000, under_limit(kNoLimit, 4));
  for (const int64_t count : {40'000, 9}) {
    reader->firsts.clear();
    expect_gathered(gathered, drawn(count, 1));
    EXPECT_TRUE(std::is_sorted(reader->firsts.begin(), reader->firsts.end()));
    EXPECT_EQ(reader->threads, std::set<std::thread::id>{std::this_thread::get_id()});
  }
}

}  // namespace
}  // namespace kith
