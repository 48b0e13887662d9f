// An index of f64 vectors: what its first vectors lose, all others and every query lose too, in memory and in files.
#include <kith/error.hpp>
#include <kith/faiss_file.hpp>
#include <kith/index.hpp>
#include <kith/index_graph.hpp>
#include <kith/knn_graph.hpp>

#include "index/index_check.hpp"
#include "io/temporary_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kFarRows = 600;
constexpr int64_t kFarCols = 6;

// Within a few units of 1e9.
std::vector<double> far_away(int64_t rows, uint64_t seed, double where = 1e9) {
  std::mt19937_64 random(seed);
  std::vector<double> values;
  for (int64_t i = 0; i < rows * kFarCols; ++i) values.push_back(where + static_cast<double>(random() >> 11) * 0x1p-50);
  return values;
}

MatrixView far_view(const std::vector<double>& values) {
  return {values.data(), static_cast<int64_t>(values.size()) / kFarCols, kFarCols};
}

Index far_index(const std::string& factory, const std::vector<double>& x) {
  Index index(factory, {.metric = Metric::l2});
  index.train(far_view(x), on_cpu());
  index.add(far_view(x), Ownership::copy, on_cpu());
  return index;
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(IndexFloat64, FindsWhatAnExactSearchFinds) {
  const std::vector<double> x = far_away(kFarRows, 1);
  const std::vector<double> queries = far_away(40, 2);
  const Neighbors exact = knn(far_view(queries), far_view(x), {.k = 5}, on_cpu());
  for (const char* const factory : {"Flat", "IVF8,Flat"}) {
    const Index index = far_index(factory, x);
    EXPECT_EQ(index.offset().size(), static_cast<size_t>(kFarCols));
    expect_same(index.search(far_view(queries), taken_by(index, {.k = 5, .probes = kAll}), on_cpu()), exact);
    const RangeNeighbors range = index.range_search(
        far_view(queries), range_taken_by(index, {.radius = exact.distances(0)[4], .probes = kAll}), on_cpu());
    EXPECT_GE(range.size(), 5);
  }
}

TEST(IndexFloat64, VectorsOfOtherTypesAreShiftedToo) {
  Index index("Flat");
  const std::vector<double> x = far_away(kFarRows, 1);
  index.add(far_view(x), Ownership::copy, on_cpu());
  const std::vector<float> rounded(x.begin(), x.begin() + 5 * kFarCols);
  const MatrixView few(rounded.data(), 5, kFarCols);
  index.add(few, Ownership::borrow, on_cpu());  // which it copies
  const Neighbors found = index.search(few, {.k = 1}, on_cpu());
  for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(found.distances(i)[0], 0);
  EXPECT_THROW((void)index.search({rounded.data(), 10, 3}, {.k = 1}, on_cpu()), InvalidArgument);
}

TEST(IndexFloat64, VectorsComeBackWhereTheyWere) {
  const std::vector<double> x = far_away(kFarRows, 1);
  const Index index = far_index("Flat", x);
  const std::vector<int64_t> ids{0, 7, 599};
  std::vector<double> wide(ids.size() * kFarCols);
  index.reconstruct(view(ids), {wide.data(), 3, kFarCols}, on_cpu());
  std::vector<float> narrow(wide.size());
  index.reconstruct(view(ids), {narrow.data(), 3, kFarCols}, on_cpu());
  for (size_t i = 0; i < wide.size(); ++i) {
    const double given = x[static_cast<size_t>(ids[i / kFarCols] * kFarCols) + i % kFarCols];
    EXPECT_NEAR(wide[i], given, 1e-6);
    EXPECT_EQ(narrow[i], static_cast<float>(wide[i]));
  }
}

TEST(IndexFloat64, AFileKeepsTheOffset) {
  const testing::TemporaryDirectory directory;
  const std::vector<double> x = far_away(kFarRows, 1);
  const std::vector<double> queries = far_away(20, 2);
  for (const char* const factory : {"Flat", "IVF4,SQ8", "PCA4,IVF4,PQ2x4,RFlat"}) {
    const Index index = far_index(factory, x);
    const std::string path = directory.path("a.kith");
    index.save(path, on_cpu());
    const Index loaded = Index::load(path, on_cpu());
    EXPECT_EQ(loaded.offset(), index.offset());
    expect_same(loaded.search(far_view(queries), {.k = 5}, on_cpu()),
                index.search(far_view(queries), {.k = 5}, on_cpu()));
    loaded.save(directory.path("b.kith"), on_cpu());
    EXPECT_EQ(bytes_of(path), bytes_of(directory.path("b.kith"))) << factory;
    EXPECT_THROW(write_faiss_index(index, directory.path("c.faiss"), on_cpu()), InvalidArgument);
  }
}

TEST(IndexFloat64, RemovalCompactionAndMovesKeepTheOffset) {
  const std::vector<double> x = far_away(kFarRows, 1);
  Index index = far_index("Flat", x);
  const std::vector<double> offset = index.offset();
  (void)index.remove(view(numbers(400, 100)), on_cpu());
  index.compact(on_cpu());
  EXPECT_EQ(index.offset(), offset);
  EXPECT_EQ(index.to(Device::cpu(), on_cpu()).offset(), offset);
  EXPECT_EQ(index.search(far_view(x).slice(550, 1), {.k = 1}, on_cpu()).ids(0)[0], 550);
}

TEST(IndexFloat64, OnlyTheSameOffsetsAreMerged) {
  const std::vector<double> x = far_away(kFarRows, 1);
  Index index = far_index("Flat", x);
  Index empty("Flat");
  empty.merge(index, {}, on_cpu());
  EXPECT_EQ(empty.offset(), index.offset());
  index.merge(empty, {.shift_ids = true}, on_cpu());
  EXPECT_EQ(index.size(), 2 * kFarRows);
  const Index other = far_index("Flat", far_away(kFarRows, 3, -1e9));
  try {
    index.merge(other, {.shift_ids = true}, on_cpu());
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("different offsets"));
  }
}

TEST(IndexFloat64, AnAddThatFailsFixesNothing) {
  std::vector<double> x = far_away(30, 1);
  x[50] = std::nan("");
  Index index("Flat");
  EXPECT_THROW(index.add(far_view(x), Ownership::copy, on_cpu()), InvalidArgument);
  EXPECT_TRUE(index.offset().empty());
  EXPECT_EQ(index.dimension(), 0);
}

TEST(IndexFloat64, FirstAddsAtOnceAgreeOnOneOffset) {
  const std::vector<double> x = far_away(400, 1);
  for (int attempt = 0; attempt < 10; ++attempt) {
    Index index("Flat", {.prepare = false});
    std::vector<std::thread> threads;
    for (int64_t part = 0; part < 4; ++part) {
      threads.emplace_back([&, part] { index.add(far_view(x).slice(100 * part, 100), Ownership::copy, on_cpu()); });
    }
    for (std::thread& thread : threads) thread.join();
    const Neighbors found = index.search(far_view(x), {.k = 1}, on_cpu());
    for (int64_t i = 0; i < 400; ++i) ASSERT_EQ(found.distances(i)[0], 0);
  }
}

TEST(IndexFloat64, ItsGraphIsThatOfTheVectors) {
  const std::vector<double> x = far_away(kFarRows, 1);
  const Index index = far_index("Flat", x);
  const KnnGraph graph = knn_graph(index, far_view(x), {.k = 4}, on_cpu());
  const KnnGraph exact = knn_graph(far_view(x), {.k = 4, .recall = 1}, on_cpu());
  for (int64_t i = 0; i < kFarRows; ++i) {
    for (int64_t j = 0; j < 4; ++j) ASSERT_EQ(graph.ids(i)[j], exact.ids(i)[j]);
  }
  EXPECT_EQ(graph.report().recall->recall, 1);
}

}  // namespace
}  // namespace kith
