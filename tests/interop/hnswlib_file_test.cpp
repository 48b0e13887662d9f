// hnswlib's files: what is written is read again with the same edges, whatever lies in them is checked, and edges()
// tells what the files hold. That hnswlib itself reads them is tested in tests/python.
#include <kith/error.hpp>
#include <kith/faiss_file.hpp>
#include <kith/hnswlib_file.hpp>
#include <kith/index.hpp>

#include "index/index_check.hpp"
#include "reference/data.hpp"
#include "reference/data_kinds.hpp"
#include "reference/sanitized.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

namespace kith {
namespace {

class HnswlibFile : public ::testing::Test {
 protected:
  HnswlibFile() : path_((std::filesystem::temp_directory_path() / "kith_hnswlib_file_test.bin").string()) {}
  ~HnswlibFile() override { std::remove(path_.c_str()); }

  std::string bytes() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }

  std::string path_;
};

Index graph_of(const MatrixView& rows, const char* factory, Metric metric) {
  Index index(factory, {.metric = metric});
  index.add(rows, Ownership::copy, on_cpu());
  return index;
}

std::set<std::pair<int64_t, int64_t>> pairs_of(const IndexEdges& edges) {
  std::set<std::pair<int64_t, int64_t>> pairs;
  for (int64_t i = 0; i < edges.rows(); ++i) {
    for (int64_t e = edges.offsets()[i]; e < edges.offsets()[i + 1]; ++e) pairs.insert({i, edges.columns()[e]});
  }
  return pairs;
}

TEST_F(HnswlibFile, ComesBackWithItsEdges) {
  auto rows = reference::make_kind("low_rank_24", 5000, 1);
  std::copy_n(rows.row(7), rows.cols, rows.row(2000));  // share a place
  std::copy_n(rows.row(7), rows.cols, rows.row(2001));
  const MatrixView queries = rows.view().slice(0, 50);
  for (const Metric metric : {Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::cosine}) {
    SCOPED_TRACE(name_of(metric));
    const Index index = graph_of(rows.view(), "Graph32", metric);
    write_hnswlib(index, path_, on_cpu());
    const Index back = read_hnswlib(path_, metric, on_cpu());
    EXPECT_EQ(back.factory(), "Graph32");
    EXPECT_EQ(back.size(), 5000);
    EXPECT_GT(back.info().beam, 0);
    EXPECT_EQ(back.info().lost, 0);
    if (metric == Metric::cosine) continue;  // at length 1: codes, and so places, may differ
    const auto before = pairs_of(index.edges(on_cpu()));
    const auto after = pairs_of(back.edges(on_cpu()));
    int64_t kept = 0;
    for (const auto& pair : before) kept += after.contains(pair) ? 1 : 0;
    EXPECT_GE(kept, std::ssize(before) - 10);
    int64_t same = 0;
    const Neighbors found = index.search(queries, {.k = 10, .beam = 64}, on_cpu());
    const Neighbors again = back.search(queries, {.k = 10, .beam = 64}, on_cpu());
    for (int64_t i = 0; i < 500; ++i) same += found.ids()[i] == again.ids()[i] ? 1 : 0;
    EXPECT_GE(same, 485);
  }
}

TEST_F(HnswlibFile, KeepsIdsAndLeavesOutWhatIsDeleted) {
  const auto rows = reference::make_kind("low_rank_24", 4500, 1);
  Index index("Graph16");
  const std::vector<int64_t> ids = numbers(4500, 1000);
  index.add(rows.view(), view(ids), Ownership::copy, on_cpu());
  write_hnswlib(index, path_, on_cpu());
  std::string file = bytes();
  uint64_t element_bytes = 0;
  std::memcpy(&element_bytes, file.data() + 24, 8);
  file[96 + 3 * element_bytes + 2] = 1;  // the mark of the fourth element
  write(file);
  const Index back = read_hnswlib(path_, Metric::l2, on_cpu());
  EXPECT_EQ(back.size(), 4499);
  const Neighbors found = back.search(rows.view().slice(0, 5), {.k = 1, .beam = 50}, on_cpu());
  EXPECT_EQ(found.ids(0)[0], 1000);
  EXPECT_NE(found.ids(3)[0], 1003);
  EXPECT_EQ(found.ids(4)[0], 1004);
}

TEST_F(HnswlibFile, OfFewRowsAndOfNone) {
  for (const int64_t count : {0, 1, 5, 300}) {
    SCOPED_TRACE(count);
    const auto rows = reference::make_floats(reference::Shape::gaussian, std::max<int64_t>(count, 1), 8, 1);
    Index index("Graph16");
    if (count > 0) index.add(rows.view(), Ownership::copy, on_cpu());
    if (count == 0) {
      index.add(rows.view(), Ownership::copy, on_cpu());
      const std::vector<int64_t> all = {0};
      index.remove(view(all), on_cpu());
    }
    write_hnswlib(index, path_, on_cpu());
    const Index back = read_hnswlib(path_, Metric::l2, on_cpu());
    EXPECT_EQ(back.size(), count);
    if (count > 0) expect_exact(back, rows.view().slice(0, 1), numbers(count));
  }
}

// Made by hnswlib 0.8: 60 vectors i, i + 1, ..., i + 4, labels 100 + i, M = 4; in the second label 107 is deleted.
TEST_F(HnswlibFile, OfHnswlibIsRead) {
  const std::string folder = std::string(KITH_GOLDEN) + "/hnswlib/";
  const Index whole = read_hnswlib(folder + "plain.bin", Metric::sqeuclidean, on_cpu());
  EXPECT_EQ(whole.factory(), "Graph16");
  EXPECT_EQ(whole.size(), 60);
  EXPECT_EQ(whole.dimension(), 5);
  const std::vector<float> row = reconstructed(whole, {107});
  EXPECT_EQ(row, (std::vector<float>{7, 8, 9, 10, 11}));
  const Index deleted = read_hnswlib(folder + "deleted.bin", Metric::l2, on_cpu());
  EXPECT_EQ(deleted.size(), 59);
  const MatrixView query(row.data(), 1, 5);
  EXPECT_EQ(whole.search(query, {.k = 1}, on_cpu()).ids()[0], 107);
  EXPECT_EQ(deleted.search(query, {.k = 1}, on_cpu()).ids()[0], 106);
}

// Made by FAISS 1.15: IndexHNSWFlat(5, 4) of the same vectors.
TEST_F(HnswlibFile, OfFaissIsRead) {
  const Index index = read_faiss_index(std::string(KITH_GOLDEN) + "/hnswlib/hnsw_flat.faiss", on_cpu());
  EXPECT_EQ(index.factory(), "Graph16");
  EXPECT_EQ(index.params().metric, Metric::sqeuclidean);
  EXPECT_EQ(index.size(), 60);
  EXPECT_EQ(reconstructed(index, {7}), (std::vector<float>{7, 8, 9, 10, 11}));
}

TEST_F(HnswlibFile, DamagedFilesAreRefused) {
  const auto rows = reference::make_floats(reference::Shape::gaussian, 200, 8, 1);
  write_hnswlib(graph_of(rows.view(), "Graph16", Metric::l2), path_, on_cpu());
  const std::string whole = bytes();
  for (const size_t cut : {size_t{0}, size_t{50}, size_t{95}, size_t{500}, whole.size() - 1}) {
    write(whole.substr(0, cut));
    EXPECT_THROW((void)read_hnswlib(path_, Metric::l2, on_cpu()), CorruptFile) << cut;
  }
  write(whole + "x");
  EXPECT_THROW((void)read_hnswlib(path_, Metric::l2, on_cpu()), CorruptFile);
  // No byte may lead anywhere but to an index or an error.
  for (size_t at = 0; at < whole.size(); at += at < 400 ? 1 : 997) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0xA5);
    write(changed);
    try {
      (void)read_hnswlib(path_, Metric::l2, on_cpu(int64_t{1} << 30));
    } catch (const Error&) {
      continue;
    }
  }
  EXPECT_THROW((void)read_hnswlib(path_, Metric::l1, on_cpu()), InvalidArgument);
}

TEST_F(HnswlibFile, OtherIndexesAreRefused) {
  const auto rows = reference::make_floats(reference::Shape::gaussian, 100, 8, 1);
  Index flat("Flat");
  flat.add(rows.view(), Ownership::copy, on_cpu());
  EXPECT_THROW(write_hnswlib(flat, path_, on_cpu()), Unsupported);
  EXPECT_THROW((void)flat.edges(on_cpu()), Unsupported);
  EXPECT_THROW(write_hnswlib(graph_of(rows.view(), "Graph16", Metric::l1), path_, on_cpu()), Unsupported);
  const auto bytes = reference::make_bytes(100, 8, 1);
  EXPECT_THROW(write_hnswlib(graph_of(bytes.view(), "Graph16", Metric::l2), path_, on_cpu()), Unsupported);
}

TEST(IndexEdges, AreThoseOfTheGraph) {
  const auto rows = reference::make_kind("low_rank_24", 5000, 1);
  Index index = graph_of(rows.view(), "Graph16", Metric::l2);
  const IndexEdges edges = index.edges(on_cpu());
  ASSERT_EQ(edges.rows(), 5000);
  for (int64_t i = 0; i < 5000; ++i) {
    const int64_t degree = edges.offsets()[i + 1] - edges.offsets()[i];
    ASSERT_GE(degree, 1);
    ASSERT_LE(degree, 18);
    for (int64_t e = edges.offsets()[i]; e < edges.offsets()[i + 1]; ++e) {
      ASSERT_GE(edges.columns()[e], 0);
      ASSERT_LT(edges.columns()[e], 5000);
      ASSERT_NE(edges.columns()[e], i);
    }
  }
  index.add(rows.view().slice(0, 3), Ownership::copy, on_cpu());
  const IndexEdges grown = index.edges(on_cpu());
  EXPECT_EQ(grown.rows(), 5003);
  EXPECT_EQ(grown.size(), edges.size());
}

}  // namespace
}  // namespace kith
