// Index("Graph32x4"): walks by codes of four bits. Recall, codes of half the memory, the same bytes however it is
// asked, growth, removal, filters, files, and what it refuses. What all graphs have is in graph_index_test.cpp.
#include <kith/error.hpp>
#include <kith/index.hpp>
#include <kith/index_edges.hpp>
#include <kith/knn_graph.hpp>

#include "index/graph_check.hpp"
#include "index/index_check.hpp"
#include "reference/data.hpp"
#include "reference/data_kinds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Matrix;
using reference::Shape;
using ::testing::HasSubstr;

constexpr int64_t kWide = 96;

// Rows of many columns in which each says something, as vectors of models have them.
Matrix<float> wide_rows(int64_t count, uint64_t seed = 1) {
  const auto few = make_floats(Shape::gaussian, count, 24, seed);
  const auto turn = make_floats(Shape::gaussian, 24, kWide, 77);
  Matrix<float> rows(count, kWide);
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t c = 0; c < kWide; ++c) {
      float sum = 0;
      for (int64_t f = 0; f < 24; ++f) sum += few.row(i)[f] * turn.row(f)[c];
      rows.row(i)[c] = std::abs(sum);
    }
  }
  return rows;
}

int64_t code_bytes_of(const Index& index) {
  for (const auto& [name, bytes] : index.info().parts) {
    if (name == "codes of the walk") return bytes;
  }
  return 0;
}

TEST(GraphOfFourBits, FindsNeighborsWithHalfTheCodes) {
  const auto rows = wide_rows(walked_rows());
  const MatrixView queries = rows.view().slice(0, 50);
  for (const Metric metric : {Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::cosine}) {
    SCOPED_TRACE(name_of(metric));
    const Index index = graph_of(rows.view(), "Graph16x4", metric);
    const IndexInfo info = index.info();
    EXPECT_EQ(info.walk_bits, 4);
    EXPECT_EQ(info.degree, 16);
    EXPECT_LE(info.clipped, rows.rows * kWide / 20);
    EXPECT_GE(recall_of(index, index.search(queries, {.beam = 64}, on_cpu()), queries, rows.view()), 0.95);
    EXPECT_GE(recall_of(index, index.search(queries, {}, on_cpu()), queries, rows.view()), 0.9);
    if (metric != Metric::l2) continue;
    const Index bytes = graph_of(rows.view(), "Graph16", metric);
    EXPECT_EQ(bytes.info().walk_bits, 8);
    EXPECT_EQ(2 * code_bytes_of(index), code_bytes_of(bytes));
  }
}

// Whole numbers from 0 to 120 are the same vectors in every dtype.
template <typename T>
Matrix<T> whole_numbers(const Matrix<float>& rows) {
  const float largest = *std::max_element(rows.values.begin(), rows.values.end());
  Matrix<T> whole(rows.rows, rows.cols);
  for (size_t i = 0; i < rows.values.size(); ++i) {
    whole.values[i] = static_cast<T>(std::round(rows.values[i] / largest * 120));
  }
  return whole;
}

TEST(GraphOfFourBits, BytesAreCodedAsFloatsAre) {
  const auto rows = wide_rows(5000);
  const auto floats = whole_numbers<float>(rows);
  const auto bytes = whole_numbers<uint8_t>(rows);
  const auto with_sign = whole_numbers<int8_t>(rows);
  const MatrixView queries = floats.view().slice(0, 40);
  const SearchParams params{.k = 10, .beam = 64};
  for (const Metric metric : {Metric::l2, Metric::cosine}) {
    const Index index = graph_of(bytes.view(), "Graph16x4", metric);
    EXPECT_EQ(index.info().walk_bits, 4);
    const Neighbors found = index.search(queries, params, on_cpu());
    EXPECT_GE(recall_of(index, found, queries, floats.view()), 0.93);
    expect_same(found, index.search(bytes.view().slice(0, 40), params, on_cpu()));
    const Index other = graph_of(with_sign.view(), "Graph16x4", metric);
    EXPECT_EQ(other.info().clipped, index.info().clipped);
    EXPECT_GE(recall_of(other, other.search(queries, params, on_cpu()), queries, floats.view()), 0.93);
  }
}

TEST(GraphOfFourBits, TheSameBytesForAnyBatchThreadsAndFiles) {
  const auto rows = wide_rows(6000);
  auto queries = wide_rows(40, 2);
  for (int64_t c = 0; c < kWide; ++c) queries.row(3)[c] *= 30;  // far outside: a query of words
  const Index index = graph_of(rows.view(), "Graph32x4");
  const SearchParams params{.k = 7, .beam = 20};
  const Neighbors all = index.search(queries.view(), params, on_cpu());
  expect_same(all,
              graph_of(rows.view(), "Graph32x4", Metric::l2, 8).search(queries.view(), params, on_cpu(kNoLimit, 8)));
  const std::string path = (std::filesystem::temp_directory_path() / "kith_graph_four_bits_test.kith").string();
  index.save(path, on_cpu());
  const Index loaded = Index::load(path, on_cpu());
  std::filesystem::remove(path);
  EXPECT_EQ(loaded.factory(), "Graph32x4");
  EXPECT_EQ(loaded.info().walk_bits, 4);
  EXPECT_EQ(loaded.info().recalls, index.info().recalls);
  expect_same(all, loaded.search(queries.view(), params, on_cpu()));
  for (int64_t q = 0; q < 40; ++q) {
    const Neighbors one = loaded.search(queries.view().slice(q, 1), params, on_cpu(kNoLimit, 1));
    ASSERT_TRUE(std::equal(one.ids(), one.ids() + 7, all.ids(q)));
  }
}

// Lists are made by codes of bytes, whatever walks go by: but for edges to rows that walks did not find, in some of the
// lists, they are the same.
TEST(GraphOfFourBits, HasTheEdgesOfBytes) {
  const auto rows = wide_rows(5000);
  const IndexEdges four = graph_of(rows.view(), "Graph16x4").edges(on_cpu());
  const IndexEdges eight = graph_of(rows.view(), "Graph16").edges(on_cpu());
  int64_t same = 0;
  for (int64_t row = 0; row < 5000; ++row) {
    const int64_t* const list = four.columns() + four.offsets()[row];
    const int64_t* const other = eight.columns() + eight.offsets()[row];
    const int64_t count = four.offsets()[row + 1] - four.offsets()[row];
    same += std::equal(list, list + std::min(count, eight.offsets()[row + 1] - eight.offsets()[row]), other) ? 1 : 0;
  }
  EXPECT_GE(same, 4500);
}

TEST(GraphOfFourBits, GrowsAndShrinks) {
  const auto data = wide_rows(7000);
  const MatrixView rows = data.view();
  Index index = graph_of(rows.slice(0, 5000), "Graph16x4");
  index.add(rows.slice(5000, 100), Ownership::copy, on_cpu());
  EXPECT_EQ(index.info().unlinked, 100);
  index.add(rows.slice(5100, 900), Ownership::copy, on_cpu());
  EXPECT_EQ(index.info().unlinked, 0);
  EXPECT_EQ(index.info().walk_bits, 4);
  const MatrixView some = rows.slice(5000, 60);
  const SearchParams params{.k = 10, .beam = 64};
  EXPECT_GE(recall_of(index, index.search(some, params, on_cpu()), some, rows.slice(0, 6000)), 0.95);
  index.add(rows.slice(6000, 1000), Ownership::copy, on_cpu());
  std::vector<int64_t> gone(1000);
  for (size_t i = 0; i < gone.size(); ++i) gone[i] = static_cast<int64_t>(i) * 3;
  index.remove(view(gone), on_cpu());
  index.compact(on_cpu());
  EXPECT_EQ(index.info().size, 6000);
  Matrix<float> left(6000, kWide);
  int64_t count = 0;
  for (int64_t i = 0; i < 7000; ++i) {
    if (i % 3 == 0 && i < 3000) continue;
    std::copy_n(data.row(i), kWide, left.row(count++));
  }
  const MatrixView queries = left.view().slice(2000, 60);
  const Index fresh = graph_of(left.view(), "Graph16x4");
  EXPECT_GE(recall_of(index, index.search(queries, params, on_cpu()), queries, left.view()),
            recall_of(fresh, fresh.search(queries, params, on_cpu()), queries, left.view()) - 0.03);
  EXPECT_LE(index.info().lost, 6);
}

TEST(GraphOfFourBits, FiltersStartsAndScalarCodes) {
  const auto rows = wide_rows(8000);
  const MatrixView queries = rows.view().slice(0, 30);
  std::vector<uint8_t> half(8000);
  for (size_t i = 0; i < half.size(); ++i) half[i] = i % 2 == 0 ? 1 : 0;
  const RowFilter filter = RowFilter::mask(half.data(), 8000);
  const Index index = graph_of(rows.view(), "Graph16x4,SQ8");
  const Index exact = graph_of(rows.view(), "SQ8");
  const auto expect_found = [&](const Index& walked, const RowFilter& kept) {
    const Neighbors found = walked.search(queries, {.filter = kept, .beam = 64}, on_cpu());
    const Neighbors truth = exact.search(queries, {.filter = kept}, on_cpu());
    int64_t right = 0;
    for (int64_t i = 0; i < 300; ++i) right += found.ids()[i] == truth.ids()[i] ? 1 : 0;
    EXPECT_GE(right, 255);
  };
  expect_found(index, {});
  expect_found(index, filter);
  Index started("Graph16x4");
  const KnnGraph graph = knn_graph(rows.view(), {.k = 96}, on_cpu());
  started.add(rows.view(), {}, graph, on_cpu());
  EXPECT_EQ(started.info().walk_bits, 4);
  EXPECT_GE(recall_of(started, started.search(queries, {.beam = 64}, on_cpu()), queries, rows.view()), 0.95);
}

TEST(GraphOfFourBits, HardRows) {
  for (const Shape shape : reference::kAllShapes) {
    SCOPED_TRACE(name_of(shape));
    const auto rows = make_floats(shape, 4500, 6, 1);
    const MatrixView queries = rows.view().slice(0, 20);
    for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine}) {
      const Index index = graph_of(rows.view(), "Graph16x4", metric);
      const Neighbors found = index.search(queries, {.k = 10, .beam = 64}, on_cpu());
      for (int64_t i = 0; i < 200; ++i) ASSERT_GE(found.ids()[i], 0);
    }
  }
}

// A step of four bits over clusters that lie far apart is wider than a cluster.
TEST(GraphOfFourBits, WarnsWhereFourBitsAreTooCoarse) {
  auto rows = make_floats(Shape::gaussian, 6000, 16, 1);
  const auto centres = make_floats(Shape::gaussian, 60, 16, 2);
  for (int64_t i = 0; i < 6000; ++i) {
    for (int64_t c = 0; c < 16; ++c) rows.row(i)[c] += 20 * centres.row(i / 100)[c];
  }
  std::string said;
  Index index("Graph16x4");
  index.add(rows.view(), Ownership::copy, on_cpu().with_log([&](LogLevel, std::string_view line) { said += line; }));
  EXPECT_EQ(index.info().walk_bits, 4);
  EXPECT_THAT(said, HasSubstr("use Graph16, or search with a larger refine"));
}

TEST(GraphOfFourBits, IsRefusedByName) {
  for (const Metric metric : {Metric::l1, Metric::linf, Metric::chi_square, Metric::hamming}) {
    SCOPED_TRACE(name_of(metric));
    EXPECT_THAT(message_of([&] { (void)Index("Graph32x4", {.metric = metric}); }),
                HasSubstr("codes of four bits serve l2, sqeuclidean, inner_product and cosine: use Graph32"));
  }
  EXPECT_THAT(message_of([] { (void)Index("Graph32x8"); }), HasSubstr("Graph32 is walked by 8, Graph32x4 by 4"));
  EXPECT_THAT(message_of([] { (void)Index("Graph40x4"); }), HasSubstr("a multiple of 16 from 16 to 128"));
  EXPECT_THROW((void)Index("Graph32x"), InvalidArgument);
  EXPECT_THROW((void)Index("Graph32x4x4"), InvalidArgument);
}

}  // namespace
}  // namespace kith
