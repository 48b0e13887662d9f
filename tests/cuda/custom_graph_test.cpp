// Graphs by a metric of one's own on the GPU against the CPU's: the metrics here are computed alike by both compilers.
#include "cuda/custom_metric_search.hpp"
#include "cuda/device_data.hpp"
#include "cuda/parity.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <string>

namespace kith {
namespace {

using ::testing::HasSubstr;

class CudaCustomGraphSmall : public OnCuda {};
class CudaCustomGraph : public OnCuda {};

// Whole numbers, so that sums are exact; many ties and duplicates.
Vectors whole_numbers(int64_t rows, int64_t cols) {
  return make_vectors(rows, cols,
                      [](int64_t i, int64_t j) { return static_cast<float>((i * i * 31 + i * j * 17 + j) % 53); });
}

void expect_same_graph(TestMetric metric, const MatrixView& x, const CustomGraphParams& params,
                       const Resources& cuda = on_cuda()) {
  SCOPED_TRACE(::testing::Message() << x.rows() << " x " << x.cols() << ", k " << params.k);
  const CustomGraph expected = graph_by(metric, x, params, on_cpu());
  const CustomGraph found = graph_by_cuda(metric, x, params, cuda);
  expect_same_bytes(expected.neighbors, found.neighbors);
  ASSERT_EQ(expected.report.rounds.size(), found.report.rounds.size());
  for (size_t i = 0; i < found.report.rounds.size(); ++i) {
    EXPECT_EQ(expected.report.rounds[i].comparisons, found.report.rounds[i].comparisons);
    EXPECT_EQ(expected.report.rounds[i].updates, found.report.rounds[i].updates);
    EXPECT_EQ(expected.report.rounds[i].recall, found.report.rounds[i].recall);
  }
  EXPECT_EQ(expected.report.recall->recall, found.report.recall->recall);
}

TEST_F(CudaCustomGraphSmall, IsTheCpusGraph) {
  expect_same_graph(TestMetric::weighted, whole_numbers(300, 7).view(), {.k = 5, .seed = 3});
  expect_same_graph(TestMetric::weighted, whole_numbers(257, 40).view(), {.k = 1, .samples = 3, .list_length = 9});
}

TEST_F(CudaCustomGraphSmall, IsExactWhereAllOthersFitAList) {
  for (const int64_t rows : {1, 2, 5, 60})
    expect_same_graph(TestMetric::canberra, whole_numbers(rows, 4).view(), {.k = 3});
  const CustomGraph none =
      graph_by_cuda(TestMetric::canberra, MatrixView(static_cast<const float*>(nullptr), 0, 4), {.k = 3}, on_cuda());
  EXPECT_EQ(none.neighbors.queries(), 0);
}

TEST_F(CudaCustomGraph, IsTheCpusGraphForEveryUpdateAndShape) {
  const Vectors x = whole_numbers(5000, 12);
  for (const GraphUpdate update : {GraphUpdate::selective, GraphUpdate::all}) {
    expect_same_graph(TestMetric::weighted, x.view(), {.k = 10, .recall = 0.97, .update = update});
  }
  expect_same_graph(TestMetric::weighted, whole_numbers(1500, 3).view(), {.k = 33, .samples = 70, .list_length = 140});
  expect_same_graph(TestMetric::canberra, random_vectors(DType::f32, 3000, 9, 2).view(), {.k = 10});
}

TEST_F(CudaCustomGraph, ReachesItsRecallOnTheDevicesRows) {
  const Vectors x = random_vectors(DType::f32, 4000, 10, 5);
  const DeviceMatrix device(x.view());
  const CustomGraph graph = graph_by_cuda(TestMetric::canberra, device.view(), {.k = 10, .recall = 0.98}, Resources());
  EXPECT_TRUE(graph.report.reached);
  EXPECT_GT(graph.report.peak_device_bytes, 4000 * 64 * 8);
  const Neighbors truth = search_by(TestMetric::canberra, x.view(), x.view(), {.k = 11}, on_cpu());
  int64_t found = 0;
  for (int64_t row = 0; row < x.view().rows(); ++row) {
    for (int64_t j = 0; j < 10; ++j) {
      EXPECT_NE(graph.neighbors.ids(row)[j], row);
      found += graph.neighbors.distances(row)[j] <= truth.distances(row)[10] ? 1 : 0;
    }
  }
  EXPECT_GE(static_cast<double>(found) / 40000, 0.97);
}

TEST_F(CudaCustomGraph, EveryDtypeAndALimit) {
  for (const DType dtype : kAllDtypes) {
    const Stored x(dtype, 700, 20, 4, true);
    expect_same_graph(TestMetric::weighted, x.view(), {.k = 6});
  }
  ResourceOptions options = cuda_options();
  options.device_memory_limit = 96 << 20;
  expect_same_graph(TestMetric::weighted, whole_numbers(2000, 8).view(), {.k = 6}, Resources(options));
}

TEST_F(CudaCustomGraph, NamesLimitsThatWouldDo) {
  const Vectors x = whole_numbers(3000, 8);
  const DeviceMatrix device(x.view());
  for (const MatrixView& rows : {x.view(), device.view()}) {
    for (int64_t ResourceOptions::*const limit :
         {&ResourceOptions::device_memory_limit, &ResourceOptions::host_memory_limit}) {
      ResourceOptions options = cuda_options();
      options.*limit = 60'000;
      const auto named = [&] {
        try {
          graph_by_cuda(TestMetric::weighted, rows, {.k = 6}, Resources(options));
        } catch (const OutOfMemory& error) {
          EXPECT_THAT(error.what(), HasSubstr("memory limit of"));
          return error.bytes_needed();
        }
        return int64_t{0};
      };
      const int64_t enough = named();
      ASSERT_GT(enough, 60'000);
      options.*limit = enough - 1;
      EXPECT_EQ(named(), enough);
      options.*limit = enough;
      EXPECT_EQ(named(), 0);
    }
  }
}

TEST_F(CudaCustomGraph, RefusesWhatItCannotDo) {
  Vectors x = random_vectors(DType::f32, 300, 4, 6);
  const auto refuse = [&](TestMetric metric, const CustomGraphParams& params, const Resources& resources = on_cuda()) {
    return text_thrown<InvalidArgument>([&] { graph_by_cuda(metric, x.view(), params, resources); });
  };
  EXPECT_THAT(refuse(TestMetric::one_way, {}), HasSubstr("symmetric"));
  EXPECT_THAT(refuse(TestMetric::canberra, {.recall = 1}), HasSubstr("recall"));
  EXPECT_THAT(refuse(TestMetric::canberra, {.samples = 0}), HasSubstr("samples"));
  EXPECT_THROW(graph_by_cuda(TestMetric::canberra, x.view(), {}, on_cpu()), Unsupported);
  EXPECT_THROW(graph_by(TestMetric::canberra, x.view(), {}, on_cuda()), Unsupported);
  EXPECT_THROW(graph_by_cuda(TestMetric::canberra, x.view(), {.samples = 1000}, on_cuda()), Unsupported);
  ResourceOptions options = cuda_options();
  options.device_memory_limit = 1000;
  EXPECT_THROW(graph_by_cuda(TestMetric::canberra, x.view(), {}, Resources(options)), OutOfMemory);
  ResourceOptions stopped = cuda_options();
  stopped.cancel.request();
  EXPECT_THROW(graph_by_cuda(TestMetric::canberra, x.view(), {}, Resources(stopped)), Cancelled);
  x.row(217)[2] = NAN;
  EXPECT_THAT(refuse(TestMetric::canberra, {}), HasSubstr("row 217"));
}

}  // namespace
}  // namespace kith
