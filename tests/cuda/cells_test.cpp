// Graphs by cells on the GPU against the CPU: the same bytes, round by round.
#include "cuda/device_data.hpp"
#include "cuda/parity.hpp"
#include "graph/same_graph.hpp"
#include "reference/data.hpp"
#include "reference/data_kinds.hpp"

#include <kith/graph_recall.hpp>
#include <kith/knn_graph.hpp>

#include <cmath>
#include <string>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

class CudaCellsTiny : public OnCuda {};  // every kernel once, small enough for tools that watch each access
class CudaCellsSmall : public OnCuda {};
class CudaCells : public OnCuda {};

KnnGraphParams by_cells(int64_t k, Metric metric, int64_t cells, int64_t probes) {
  KnnGraphParams params;
  params.k = k;
  params.metric = metric;
  params.method = GraphMethod::cells;
  params.cells = cells;
  params.probes = probes;
  params.recall = 0.9999;
  params.seed = 3;
  return params;
}

void expect_same_rounds(const GraphReport& expected, const GraphReport& found) {
  EXPECT_EQ(expected.reached, found.reached);
  ASSERT_TRUE(expected.forecast && found.forecast);
  EXPECT_EQ(expected.forecast->probes, found.forecast->probes);
  EXPECT_EQ(expected.forecast->comparisons, found.forecast->comparisons);
  ASSERT_TRUE(expected.recall && found.recall);
  EXPECT_EQ(expected.recall->recall, found.recall->recall);
  EXPECT_EQ(expected.recall->recall_at_10, found.recall->recall_at_10);
  ASSERT_EQ(expected.rounds.size(), found.rounds.size());
  for (size_t i = 0; i < found.rounds.size(); ++i) {
    EXPECT_EQ(expected.rounds[i].recall, found.rounds[i].recall) << "round " << i;
    EXPECT_EQ(expected.rounds[i].updates, found.rounds[i].updates) << "round " << i;
    EXPECT_EQ(expected.rounds[i].comparisons, found.rounds[i].comparisons) << "round " << i;
    EXPECT_NEAR(expected.rounds[i].phi, found.rounds[i].phi, 1e-9 * std::abs(expected.rounds[i].phi)) << "round " << i;
  }
}

void expect_cells_parity(const MatrixView& x, const KnnGraphParams& params, const Resources& cuda = on_cuda()) {
  SCOPED_TRACE(::testing::Message() << x.rows() << " x " << x.cols() << " " << name_of(x.dtype()) << ", k " << params.k
                                  << ", " << name_of(params.metric));
  const KnnGraph expected = knn_graph(x, params, on_cpu());
  const KnnGraph found = knn_graph(x, params, cuda);
  expect_same_bytes(expected, found);
  expect_same_rounds(expected.report(), found.report());
}

TEST_F(CudaCellsSmall, SameAsOnTheCpu) {
  for (const Shape shape : reference::kAllShapes) {
    SCOPED_TRACE(::testing::Message() << shape);
    const auto x = make_floats(shape, 700, 19, 3);
    for (const Metric metric : kAllMetrics) expect_cells_parity(x.view(), by_cells(5, metric, 12, 5));
  }
}

TEST_F(CudaCellsTiny, AWaveOrTwo) {
  expect_cells_parity(make_floats(Shape::gaussian, 90, 9, 3).view(), by_cells(3, Metric::l2, 4, 2));
}

TEST_F(CudaCellsSmall, EveryDtype) {
  for (const DType dtype : kAllDtypes) {
    for (const Metric metric : kAllMetrics) {
      expect_cells_parity(Stored(dtype, 900, 33, 5, dtype != DType::u8).view(), by_cells(7, metric, 9, 4));
    }
  }
}

TEST_F(CudaCellsSmall, RowsAndResultsOnTheDevice) {
  const auto x = make_floats(Shape::near_duplicates, 600, 12, 4);
  const KnnGraphParams params = by_cells(6, Metric::l2, 10, 4);
  const KnnGraph expected = knn_graph(x.view(), params, on_cpu());
  const DeviceMatrix device(x.view());
  expect_same_bytes(expected, knn_graph(device.view(), params, Resources()));
  for (const MatrixView& rows : {device.view(), x.view()}) {
    const DeviceResult result(600, 6);
    knn_graph(rows, result.view, params, on_cuda());
    expect_same_bytes(expected, result.on_host());
  }
}

TEST_F(CudaCellsSmall, RefuseNan) {
  auto x = make_floats(Shape::gaussian, 300, 5, 4);
  x.row(123)[2] = std::nanf("");
  const auto text = text_thrown<InvalidArgument>([&] { knn_graph(x.view(), by_cells(3, Metric::l2, 4, 2), on_cuda()); });
  EXPECT_NE(text.find("x row 123"), std::string::npos) << text;
  for (const GraphMethod method : {GraphMethod::exact, GraphMethod::nn_descent}) {
    EXPECT_EQ(text_thrown<InvalidArgument>([&] { knn_graph(x.view(), {.k = 3, .method = method}, on_cuda()); }), text);
  }
}

TEST_F(CudaCells, ShapesAroundTiles) {
  for (const int64_t rows : {255, 256, 257, 1025}) {
    for (const int64_t cols : {1, 3, 64, 65, 130}) {
      expect_cells_parity(make_floats(Shape::gaussian, rows, cols, 7).view(), by_cells(10, Metric::l2, 2, 2));
    }
  }
  expect_cells_parity(make_floats(Shape::gaussian, 500, 2048, 7).view(), by_cells(10, Metric::cosine, 4, 2));
  expect_cells_parity(make_floats(Shape::gaussian, 300, 8001, 7).view(), by_cells(3, Metric::l2, 3, 2));
}

TEST_F(CudaCells, OneHugeCellAndEmptyOnes) {
  auto x = make_floats(Shape::gaussian, 4500, 8, 5);
  for (int64_t i = 0; i < 4400; ++i) std::fill_n(x.row(i), 8, 1.0f);
  expect_cells_parity(x.view(), by_cells(4, Metric::l2, 20, 2));
  expect_cells_parity(make_floats(Shape::all_equal, 5000, 6, 5).view(), by_cells(9, Metric::cosine, 7, 3));
}

// Three or four distinct rows in eight cells: some cells have no rows, and every row probes one of these sooner or
// later.
TEST_F(CudaCells, FewerDistinctRowsThanCells) {
  for (const int64_t distinct : {3, 4}) {
    auto x = make_floats(Shape::gaussian, 4400, 1, 5);
    for (int64_t i = 0; i < x.rows; ++i) x.row(i)[0] = 0.25f + static_cast<float>((i * 7 + i / 11) % distinct);
    for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine}) {
      SCOPED_TRACE(::testing::Message() << distinct << " distinct rows, " << name_of(metric));
      for (const int64_t probes : {1, 2, 4, 8}) expect_cells_parity(x.view(), by_cells(10, metric, 8, probes));
      KnnGraphParams rounds;  // which begin with eight cells
      rounds.k = 10;
      rounds.metric = metric;
      rounds.method = GraphMethod::nn_descent;
      expect_same_bytes(knn_graph(x.view(), rounds, on_cpu()), knn_graph(x.view(), rounds, on_cuda()));
    }
  }
}

// Few values, so that distances are equal: far more pairs pass than a piece has room for.
TEST_F(CudaCells, MorePairsThanThereIsRoomFor) {
  auto x = make_floats(Shape::gaussian, 9000, 40, 5);
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t c = 0; c < x.cols; ++c) x.row(i)[c] = x.row(i)[c] > 1.3f ? 1.0f : 0.0f;
  }
  for (const Metric metric : {Metric::cosine, Metric::l2, Metric::inner_product}) {
    expect_cells_parity(x.view(), by_cells(15, metric, 3, 3));
    expect_cells_parity(x.view(), by_cells(15, metric, 40, 8));
    expect_cells_parity(x.view(), by_cells(60, metric, 12, 4));
  }
}

TEST_F(CudaCells, AnyNumberOfNeighbors) {
  const auto x = make_floats(Shape::gaussian, 5000, 24, 9);
  for (const int64_t k : {1, 31, 32, 33, 100, 300, 1000}) expect_cells_parity(x.view(), by_cells(k, Metric::l2, 4, 3));
  expect_cells_parity(make_floats(Shape::near_duplicates, 5000, 24, 9).view(), by_cells(64, Metric::inner_product, 6, 3));
}

TEST_F(CudaCells, DefaultsAndManyRows) {
  const auto x = make_floats(Shape::gaussian, 60000, 16, 9);
  for (const Metric metric : {Metric::l2, Metric::inner_product}) {
    KnnGraphParams params;
    params.metric = metric;
    params.method = GraphMethod::cells;
    params.recall = 0.95;
    expect_cells_parity(x.view(), params);
  }
}

// With as many probes as the recall needs, which both foresee.
TEST_F(CudaCells, EveryKindOfData) {
  for (const auto& [name, metric] : reference::data_kinds()) {
    SCOPED_TRACE(name);
    KnnGraphParams params = by_cells(10, metric, 40, 40);
    params.recall = 0.95;
    expect_cells_parity(reference::make_kind(name, 5000, 3).view(), params);
  }
}

// More probes than are ranked at a time.
TEST_F(CudaCells, ManyProbes) {
  KnnGraphParams params = by_cells(10, Metric::l2, 300, 300);
  params.recall = 0.9999;
  for (const Metric metric : {Metric::l2, Metric::inner_product}) {
    params.metric = metric;
    expect_cells_parity(make_floats(Shape::gaussian, 6000, 40, 3).view(), params);
  }
}

// Exact search follows where it is sooner, and the recall is kept either way.
TEST_F(CudaCells, AutoKeepsItsWord) {
  for (const char* const name : {"uniform", "half_equal", "low_rank_64", "four_decades"}) {
    SCOPED_TRACE(name);
    const auto x = reference::make_kind(name, 150000, 3);
    KnnGraphParams params;
    params.k = 10;
    const KnnGraph graph = knn_graph(x.view(), params, on_cuda());
    EXPECT_TRUE(graph.report().reached);
    EXPECT_GE(measure_recall(graph, x.view(), {.rows = 500, .seed = 77}, on_cuda()).recall, 0.985);
  }
}

// Enough cells that only those near the own cell's centre are ranked.
class SlowCudaCells : public OnCuda {};
TEST_F(SlowCudaCells, RankAmongTheNearestOfVeryMany) {
  const auto x = make_floats(Shape::gaussian, 20000, 3, 5);
  expect_cells_parity(x.view(), by_cells(6, Metric::l2, 16394, 40));
  expect_cells_parity(x.view(), by_cells(6, Metric::inner_product, 16394, 7));
}

TEST_F(CudaCells, UnderALimit) {
  const auto x = make_floats(Shape::near_duplicates, 20000, 32, 9);
  const KnnGraphParams params = by_cells(10, Metric::l2, 40, 6);
  ResourceOptions options = cuda_options();
  options.device_memory_limit = int64_t{64} << 20;
  expect_cells_parity(x.view(), params, Resources(options));
}

TEST_F(CudaCells, NameALimitThatWouldDo) {
  const auto x = make_floats(Shape::gaussian, 20000, 32, 9);
  const KnnGraphParams params = by_cells(10, Metric::cosine, 40, 6);
  ResourceOptions options = cuda_options();
  options.device_memory_limit = int64_t{1} << 20;
  int64_t enough = 0;
  try {
    knn_graph(x.view(), params, Resources(options));
    FAIL() << "a limit of 1 MiB held rows of 2.5";
  } catch (const OutOfMemory& error) {
    EXPECT_NE(std::string(error.what()).find("device memory limit of"), std::string::npos) << error.what();
    enough = error.bytes_needed();
  }
  options.device_memory_limit = enough;
  expect_cells_parity(x.view(), params, Resources(options));
}

TEST_F(CudaCells, StopsWhenAskedTo) {
  const auto x = make_floats(Shape::gaussian, 20000, 32, 9);
  ResourceOptions options = cuda_options();
  int asked = 0;
  options.interrupted = [&] { return ++asked > 3; };
  EXPECT_THROW(knn_graph(x.view(), by_cells(10, Metric::l2, 40, 30), Resources(options)), Cancelled);
}

}  // namespace
}  // namespace kith
