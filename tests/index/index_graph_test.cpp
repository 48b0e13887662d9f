// The graph of an index's own vectors: what a search of the index reports for each, less itself.
#include <kith/error.hpp>
#include <kith/index_graph.hpp>
#include <kith/vector_file.hpp>

#include "graph/same_graph.hpp"
#include "index/index_check.hpp"
#include "io/temporary_directory.hpp"
#include "reference/data.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Matrix;
using reference::Shape;

constexpr int64_t kGraphRows = 600;
constexpr int64_t kGraphCols = 12;

Index filled(const char* factory, Metric metric, const Matrix<float>& rows) {
  Index index(factory, {.metric = metric});
  index.train(rows.view(), on_cpu());
  index.add(rows.view(), Ownership::copy, on_cpu());
  return index;
}

TEST(IndexGraph, OfWholeVectorsAndAllListsIsExact) {
  for (const Shape shape : {Shape::gaussian, Shape::near_duplicates, Shape::all_equal}) {
    const auto rows = make_floats(shape, kGraphRows, kGraphCols, 1);
    for (const Metric metric : {Metric::l2, Metric::sqeuclidean, Metric::cosine, Metric::inner_product}) {
      for (const char* const factory : {"Flat", "IVF8,Flat"}) {
        SCOPED_TRACE(::testing::Message() << factory << ", " << name_of(metric) << ", shape " << static_cast<int>(shape));
        const Index index = filled(factory, metric, rows);
        const KnnGraph graph = knn_graph(index, rows.view(), graph_taken_by(index, {.k = 7, .probes = 8}), on_cpu());
        expect_same_bytes(knn_graph(rows.view(), {.k = 7, .metric = metric, .recall = 1}, on_cpu()), graph);
        ASSERT_TRUE(graph.report().recall.has_value());
        EXPECT_EQ(graph.report().recall->recall, 1);
        EXPECT_EQ(graph.report().method, "index");
      }
    }
  }
}

TEST(IndexGraph, OfCodesIsTheirSearchLessTheRowItself) {
  const auto rows = make_floats(Shape::gaussian, kGraphRows, kGraphCols, 3);
  const Index index = filled("IVF8,PQ3x4", Metric::l2, rows);
  const KnnGraph graph = knn_graph(index, rows.view(), {.k = 9, .probes = 2}, on_cpu());
  graph.validate(on_cpu());
  const Neighbors found = index.search(rows.view(), {.k = 10, .probes = 2}, on_cpu());
  for (int64_t row = 0; row < kGraphRows; ++row) {
    std::vector<int64_t> others;
    for (int64_t j = 0; j < 10 && others.size() < 9; ++j) {
      if (found.ids(row)[j] != row) others.push_back(found.ids(row)[j]);
    }
    ASSERT_EQ(std::vector<int64_t>(graph.ids(row), graph.ids(row) + 9), others) << row;
  }
  ASSERT_TRUE(graph.report().recall.has_value());
  EXPECT_LT(graph.report().recall->recall, 1);
  EXPECT_GT(graph.report().recall->recall, 0.05);
  // More of the lists, and a second look, find more.
  const Index refined = filled("IVF8,PQ3x4,RFlat", Metric::l2, rows);
  const KnnGraph better = knn_graph(refined, rows.view(), {.k = 9, .probes = 8, .refine = 20}, on_cpu());
  EXPECT_GT(better.report().recall->recall, graph.report().recall->recall);
}

TEST(IndexGraph, RefinesFromAFile) {
  const auto rows = make_floats(Shape::gaussian, kGraphRows, kGraphCols, 3);
  const Index index = filled("IVF8,PQ3x4", Metric::l2, rows);
  const testing::TemporaryDirectory directory;
  write_vectors(directory.path("rows.fbin"), rows.view());
  const VectorFile file(directory.path("rows.fbin"));
  // All candidates are compared again by their vectors.
  const KnnGraph graph = knn_graph(index, rows.view(), {.k = 7, .probes = 8, .refine = 1000, .refine_from = &file}, on_cpu());
  expect_same_bytes(knn_graph(rows.view(), {.k = 7, .recall = 1}, on_cpu()), graph);
}

TEST(IndexGraph, FewRows) {
  const auto rows = make_floats(Shape::gaussian, 3, kGraphCols, 4);
  for (const int64_t count : {0, 1, 3}) {
    Index index("Flat");
    if (count > 0) index.add(rows.view().slice(0, count), Ownership::copy, on_cpu());
    const KnnGraph graph = knn_graph(index, rows.view().slice(0, count), {.k = 4}, on_cpu());
    expect_same_bytes(knn_graph(rows.view().slice(0, count), {.k = 4, .recall = 1}, on_cpu()), graph);
  }
}

TEST(IndexGraph, RefusesWhatIsNotItsRows) {
  const auto rows = make_floats(Shape::gaussian, 50, kGraphCols, 5);
  Index index = filled("Flat", Metric::l2, rows);
  EXPECT_THROW(knn_graph(index, rows.view(), {.k = 0}, on_cpu()), InvalidArgument);
  try {
    knn_graph(index, rows.view().slice(0, 49), {}, on_cpu());
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("49 vectors and an index of 50"));
  }
  const int64_t last = 49;
  index.remove({&last, 1, {}}, on_cpu());
  EXPECT_EQ(knn_graph(index, rows.view().slice(0, 49), {}, on_cpu()).rows(), 49);  // the others are where they were
  const int64_t first = 0;
  index.remove({&first, 1, {}}, on_cpu());
  EXPECT_THROW(knn_graph(index, rows.view().slice(1, 48), {}, on_cpu()), InvalidArgument);
}

// Counted from the first of all, in whichever batch.
TEST(IndexGraph, NamesTheRowThatItRefuses) {
  auto rows = make_floats(Shape::gaussian, 3000, kGraphCols, 5);
  const Index index = filled("Flat", Metric::l2, rows);
  rows.row(2777)[3] = std::nanf("");
  try {
    knn_graph(index, rows.view(), {.k = 999}, on_cpu());  // 1,048 rows at a time
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("x row 2777 holds a NaN"));
  }
}

TEST(IndexGraph, NamesALimitThatWouldDo) {
  const auto rows = make_floats(Shape::gaussian, 4000, kGraphCols, 5);
  for (const char* const factory : {"Flat", "IVF8,Flat", "IVF8,PQ3x4"}) {
    SCOPED_TRACE(factory);
    const Index index = filled(factory, Metric::l2, rows);
    const KnnGraph expected = knn_graph(index, rows.view(), {.k = 20}, on_cpu());
    for (const int64_t bytes : {1000, 1'200'000, 2'000'000}) {  // the graph does not fit, a batch beside it, a search
      ResourceOptions options;
      options.device = Device::cpu();
      options.threads = 2;
      options.host_memory_limit = bytes;
      int64_t named = 0;
      try {
        knn_graph(index, rows.view(), {.k = 20}, Resources(options));
      } catch (const OutOfMemory& error) {
        named = error.bytes_needed();
        EXPECT_THAT(error.what(), ::testing::HasSubstr("would do"));
      }
      ASSERT_GT(named, bytes);
      options.host_memory_limit = named;
      expect_same_bytes(expected, knn_graph(index, rows.view(), {.k = 20}, Resources(options)));
    }
  }
}

TEST(IndexGraph, IsCancelledBetweenBatches) {
  const auto rows = make_floats(Shape::gaussian, kGraphRows, kGraphCols, 6);
  const Index index = filled("Flat", Metric::l2, rows);
  const Resources cancelled = on_cpu().with_cancel({}, [] { return true; });
  EXPECT_THROW(knn_graph(index, rows.view(), {}, cancelled), Cancelled);
}

}  // namespace
}  // namespace kith
