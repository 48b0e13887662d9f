// Graphs by NN-Descent, and graphs merged, extended and refined, on the GPU against the CPU: the same bytes.
#include "cuda/device_data.hpp"
#include "cuda/parity.hpp"
#include "graph/same_graph.hpp"
#include "reference/data.hpp"

#include <kith/graph_merge.hpp>
#include <kith/knn_graph.hpp>

#include <cmath>
#include <string>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

class CudaGraphMerge : public OnCuda {};
class CudaGraphMergeSmall : public OnCuda {};
class CudaDescentGraph : public OnCuda {};
class CudaDescentGraphSmall : public OnCuda {};

void expect_same(const KnnGraph& expected, const KnnGraph& found) {
  expect_same_bytes(expected, found);
  const GraphReport& a = expected.report();
  const GraphReport& b = found.report();
  EXPECT_EQ(a.method, b.method);
  EXPECT_EQ(a.reached, b.reached);
  ASSERT_EQ(a.recall.has_value(), b.recall.has_value());
  if (a.recall) {
    EXPECT_EQ(a.recall->recall, b.recall->recall);
  }
  ASSERT_EQ(a.rounds.size(), b.rounds.size());
  for (size_t i = 0; i < a.rounds.size(); ++i) {
    EXPECT_EQ(a.rounds[i].recall, b.rounds[i].recall) << "round " << i;
    EXPECT_EQ(a.rounds[i].updates, b.rounds[i].updates) << "round " << i;
    EXPECT_EQ(a.rounds[i].comparisons, b.rounds[i].comparisons) << "round " << i;
    EXPECT_NEAR(a.rounds[i].phi, b.rounds[i].phi, 1e-9 * std::abs(a.rounds[i].phi)) << "round " << i;
  }
}

KnnGraphParams by_descent(int64_t k, Metric metric, GraphStart start) {
  KnnGraphParams params;
  params.k = k;
  params.metric = metric;
  params.method = GraphMethod::nn_descent;
  params.start = start;
  params.seed = 5;
  return params;
}

void expect_descent_parity(const MatrixView& x, const KnnGraphParams& params) {
  SCOPED_TRACE(::testing::Message() << x.rows() << " x " << x.cols() << " " << name_of(x.dtype()) << ", k " << params.k
                                  << ", " << name_of(params.metric) << ", start " << name_of(*params.start));
  const KnnGraph expected = knn_graph(x, params, on_cpu());
  expect_same(expected, knn_graph(x, params, on_cuda()));
  const DeviceMatrix device(x);
  const DeviceResult result(x.rows(), params.k);
  knn_graph(device.view(), result.view, params, Resources());
  expect_same_bytes(expected, result.on_host());
}

TEST_F(CudaDescentGraphSmall, SameAsOnTheCpu) {
  for (const int64_t rows : {66, 127, 128, 129, 500}) {  // with fewer all others fit a list
    const auto x = make_floats(Shape::gaussian, rows, 10, 3);
    expect_descent_parity(x.view(), by_descent(7, Metric::l2, GraphStart::random));
  }
  const auto x = make_floats(Shape::gaussian, 600, 10, 3);
  expect_descent_parity(x.view(), by_descent(9, Metric::l1, GraphStart::random));
  expect_descent_parity(x.view(), by_descent(9, Metric::l2, GraphStart::cells));
}

TEST_F(CudaDescentGraph, EveryMetricAndStart) {
  const auto x = reference::without_sign(make_floats(Shape::gaussian, 2500, 12, 3));
  for (const Metric metric : kEveryMetric) {
    expect_descent_parity(x.view(), by_descent(10, metric, GraphStart::random));
    expect_descent_parity(x.view(), by_descent(10, metric, GraphStart::cells));
  }
  KnnGraphParams all = by_descent(33, Metric::l2, GraphStart::random);
  all.update = GraphUpdate::all;
  all.samples = 12;
  expect_descent_parity(x.view(), all);
  expect_descent_parity(Stored(DType::u8, 2000, 24, 6, false).view(), by_descent(10, Metric::hamming, GraphStart::random));
}

// Enough rows that joins go over them in an order of their own.
TEST_F(CudaDescentGraph, ManyRows) {
  const auto x = make_floats(Shape::gaussian, 20'000, 6, 3);
  expect_descent_parity(x.view(), by_descent(10, Metric::l2, GraphStart::random));
}

TEST_F(CudaDescentGraph, SaysWhatItCannotDo) {
  const auto x = make_floats(Shape::gaussian, 300, 4, 3);
  KnnGraphParams params = by_descent(5, Metric::l2, GraphStart::random);
  params.samples = 1000;
  EXPECT_NE(text_thrown<Unsupported>([&] { knn_graph(x.view(), params, on_cuda()); }).find("samples = 1000"),
            std::string::npos);
  ResourceOptions options = cuda_options();
  options.device_memory_limit = 20'000;
  params.samples = 8;
  EXPECT_THROW(knn_graph(x.view(), params, Resources(options)), OutOfMemory);
}

KnnGraph exact(const MatrixView& x, int64_t k, Metric metric) {
  KnnGraphParams params;
  params.k = k;
  params.metric = metric;
  params.method = GraphMethod::exact;
  return knn_graph(x, params, on_cpu());
}

TEST_F(CudaGraphMergeSmall, TwoPartsWhereverTheyLie) {
  const auto x = make_floats(Shape::gaussian, 500, 8, 3);
  const MatrixView a = x.view().slice(0, 200);
  const MatrixView b = x.view().slice(200, 300);
  for (const Metric metric : {Metric::l2, Metric::l1}) {
    const KnnGraph of_a = exact(a, 6, metric);
    const KnnGraph of_b = exact(b, 6, metric);
    const KnnGraph expected = merge_graphs(of_a, a, of_b, b, {}, on_cpu());
    expect_same(expected, merge_graphs(of_a, a, of_b, b, {}, on_cuda()));
    const DeviceMatrix device_a(a);
    const DeviceMatrix device_b(b);
    const KnnGraph there = merge_graphs(of_a, device_a.view(), of_b, device_b.view(), {}, Resources());
    EXPECT_EQ(there.space(), MemorySpace::cuda(0));
    expect_same(expected, there);
    // Graphs, too, lie anywhere; what comes of rows here and there is on the host.
    const KnnGraph device_of_a = of_a.to(MemorySpace::cuda(0), on_cuda());
    const KnnGraph device_of_b = of_b.to(MemorySpace::cuda(0), on_cuda());
    expect_same(expected, merge_graphs(device_of_a, device_a.view(), device_of_b, device_b.view(), {}, Resources()));
    expect_same(expected, merge_graphs(device_of_a, a, of_b, b, {}, on_cuda()));
    expect_same(expected, merge_graphs(device_of_a, a, of_b, b, {}, on_cpu()));
    const KnnGraph mixed = merge_graphs(of_a, a, device_of_b, device_b.view(), {}, on_cuda());
    EXPECT_TRUE(mixed.space().host_readable());
    expect_same(expected, mixed);
    const DeviceResult result(500, 6);
    merge_graphs({{device_of_a, device_a.view()}, {of_b, device_b.view()}}, result.view, {}, Resources());
    expect_same_bytes(expected, result.on_host());
    merge_graphs({{of_a, a}, {of_b, b}}, result.view, {}, on_cuda());
    expect_same_bytes(expected, result.on_host());
    EXPECT_THROW(merge_graphs(of_a, a, of_b, device_b.view(), {}, on_cpu()), Unsupported);
  }
}

TEST_F(CudaGraphMerge, EveryMetricAndHalvedLists) {
  const auto x = reference::without_sign(make_floats(Shape::gaussian, 3000, 10, 3));
  const MatrixView a = x.view().slice(0, 1700);
  const MatrixView b = x.view().slice(1700, 1300);
  for (const Metric metric : kEveryMetric) {
    SCOPED_TRACE(name_of(metric));
    const KnnGraph of_a = exact(a, 10, metric);
    const KnnGraph of_b = exact(b, 10, metric);
    expect_same(merge_graphs(of_a, a, of_b, b, {}, on_cpu()), merge_graphs(of_a, a, of_b, b, {}, on_cuda()));
  }
  GraphMergeParams params;
  params.list_length = 40;
  params.iterations = 3;
  const KnnGraph of_a = exact(a, 40, Metric::l2);
  const KnnGraph of_b = exact(b, 40, Metric::l2);
  expect_same(merge_graphs(of_a, a, of_b, b, params, on_cpu()), merge_graphs(of_a, a, of_b, b, params, on_cuda()));
}

// Few OLD samples and many NEW ones, as many of both, and, in late rounds, few NEW ones.
TEST_F(CudaGraphMerge, JoinsOfEverySize) {
  for (const int64_t cols : {24, 130}) {
    const auto x = make_floats(Shape::gaussian, 4000, cols, 3);
    const MatrixView a = x.view().slice(0, 2100);
    const MatrixView b = x.view().slice(2100, 1900);
    for (const Metric metric : {Metric::l2, Metric::cosine, Metric::inner_product}) {
      for (const int64_t k : {3, 10, 32}) {
        SCOPED_TRACE(::testing::Message() << cols << " columns, " << name_of(metric) << ", k " << k);
        const KnnGraph of_a = exact(a, k, metric);
        const KnnGraph of_b = exact(b, k, metric);
        const GraphMergeParams params{.recall = 0.999, .samples = 32, .list_length = 64, .iterations = 6};
        expect_same(merge_graphs(of_a, a, of_b, b, params, on_cpu()), merge_graphs(of_a, a, of_b, b, params, on_cuda()));
      }
    }
  }
}

TEST_F(CudaGraphMerge, ManyPartsNewRowsAndBetterGraphs) {
  const auto x = make_floats(Shape::gaussian, 9000, 8, 3);
  std::vector<GraphPart> parts;
  for (int64_t first = 0; first < 1800; first += 600) {
    const MatrixView part = x.view().slice(first, 600);
    parts.push_back({exact(part, 8, Metric::cosine), part});
  }
  const KnnGraph of_all = merge_graphs(parts, {}, on_cpu());
  expect_same(of_all, merge_graphs(parts, {}, on_cuda()));
  const DeviceMatrix everything(x.view());
  for (size_t i = 0; i < parts.size(); ++i) parts[i].x = everything.view().slice(static_cast<int64_t>(600 * i), 600);
  const KnnGraph of_all_there = merge_graphs(parts, {}, Resources());
  EXPECT_EQ(of_all_there.space(), MemorySpace::cuda(0));
  expect_same(of_all, of_all_there);
  expect_same_bytes(parts[0].graph, merge_graphs({parts[0]}, {}, Resources()));

  const MatrixView old = x.view().slice(0, 3000);
  const KnnGraph graph = exact(old, 7, Metric::l2);
  for (const int64_t fresh : {0, 5, 6000}) {
    const MatrixView added = x.view().slice(3000, fresh);
    const KnnGraph expected = extend_graph(graph, old, added, {}, on_cpu());
    expect_same(expected, extend_graph(graph, old, added, {}, on_cuda()));
    const MatrixView device_added = everything.view().slice(3000, fresh);
    const KnnGraph there = extend_graph(graph, everything.view().slice(0, 3000), device_added, {}, Resources());
    EXPECT_EQ(there.space(), MemorySpace::cuda(0));
    expect_same(expected, there);
  }

  KnnGraphParams poor;
  poor.k = 10;
  poor.method = GraphMethod::cells;
  poor.cells = 60;
  poor.probes = 2;
  const KnnGraph before = knn_graph(x.view(), poor, on_cpu());
  const KnnGraph after = refine_graph(before, x.view(), {}, on_cpu());
  expect_same(after, refine_graph(before, x.view(), {}, on_cuda()));
  const KnnGraph there = refine_graph(before.to(MemorySpace::cuda(0)), everything.view(), {}, Resources());
  EXPECT_EQ(there.space(), MemorySpace::cuda(0));
  expect_same(after, there);
  const DeviceResult result(9000, 10);
  refine_graph(before, everything.view(), result.view, {}, Resources());
  expect_same_bytes(after, result.on_host());
}

TEST_F(CudaGraphMergeSmall, RefusesWhatIsNoGraphThere) {
  const auto x = make_floats(Shape::gaussian, 300, 8, 3);
  const KnnGraph graph = exact(x.view(), 6, Metric::l2);
  std::vector<int64_t> ids(graph.ids(), graph.ids() + 1800);
  ids[6 * 211 + 4] = 211;
  const DeviceBytes wrong(ids.data(), ids.size() * 8);
  const DeviceBytes distances(graph.distances(), ids.size() * 4);
  const KnnGraph there({static_cast<int64_t*>(wrong.data()), static_cast<float*>(distances.data()), 300, 6,
                        MemorySpace::cuda(0)},
                       nullptr, Metric::l2, on_cuda());
  const DeviceMatrix device(x.view());
  const std::string told = text_thrown<InvalidArgument>([&] { refine_graph(there, device.view(), {}, Resources()); });
  EXPECT_NE(told.find("row 211 is its own neighbour"), std::string::npos) << told;
  // The graph of other vectors.
  const auto y = make_floats(Shape::gaussian, 300, 8, 4);
  const DeviceMatrix other(y.view());
  const KnnGraph right = graph.to(MemorySpace::cuda(0), on_cuda());
  EXPECT_THROW(merge_graphs(right, other.view(), right, device.view(), {}, Resources()), InvalidArgument);
  const DeviceResult small(299, 6);
  EXPECT_THROW(refine_graph(right, device.view(), small.view, {}, Resources()), InvalidArgument);
  // New rows that cannot be compared are counted from the first new one.
  auto z = make_floats(Shape::gaussian, 50, 8, 5);
  z.row(17)[3] = std::nanf("");
  const DeviceMatrix fresh(z.view());
  const std::string new_row =
      text_thrown<InvalidArgument>([&] { extend_graph(right, device.view(), fresh.view(), {}, Resources()); });
  EXPECT_NE(new_row.find("new row 17 holds a NaN"), std::string::npos) << new_row;
}

// The device's limit that is named does for the whole call.
TEST_F(CudaGraphMerge, NamesADeviceLimitThatWouldDo) {
  const auto x = make_floats(Shape::gaussian, 3000, 24, 7);
  const MatrixView a = x.view().slice(0, 1400);
  const MatrixView b = x.view().slice(1400, 1600);
  const KnnGraphParams params = by_descent(10, Metric::l2, GraphStart::random);
  const KnnGraph of_a = knn_graph(a, params, on_cpu());
  const KnnGraph of_b = knn_graph(b, params, on_cpu());
  const DeviceMatrix device(x.view());
  const MatrixView there_a = device.view().slice(0, 1400);
  const MatrixView there_b = device.view().slice(1400, 1600);
  const auto named = [&](const auto& work) {
    ResourceOptions options = cuda_options();
    options.device_memory_limit = 400'000;
    int64_t limit = 0;
    try {
      work(Resources(options));
    } catch (const OutOfMemory& error) {
      EXPECT_NE(std::string(error.what()).find("a device memory limit of"), std::string::npos) << error.what();
      limit = error.bytes_needed();
    }
    ASSERT_GT(limit, 400'000);
    options.device_memory_limit = limit;
    work(Resources(options));
  };
  // Graphs that lie there are not brought.
  const KnnGraph of_a_there = of_a.to(MemorySpace::cuda(0), on_cuda());
  const auto needed = [&](const KnnGraph& graph) {
    ResourceOptions options = cuda_options();
    options.device_memory_limit = 1000;
    try {
      refine_graph(graph, a, {}, Resources(options));
    } catch (const OutOfMemory& error) {
      return error.bytes_needed();
    }
    return int64_t{0};
  };
  EXPECT_LT(needed(of_a_there), needed(of_a));
  ResourceOptions small_host = cuda_options();  // what the host keeps beside a GPU
  small_host.host_memory_limit = 20'000;
  const auto three = [&](const Resources& resources) { merge_graphs({{of_a, a}, {of_b, b}, {of_a, a}}, {}, resources); };
  try {
    three(Resources(small_host));
    ADD_FAILURE() << "it was enough";
  } catch (const OutOfMemory& error) {
    small_host.host_memory_limit = error.bytes_needed();
    three(Resources(small_host));
  }
  named([&](const Resources& resources) { merge_graphs({{of_a, a}, {of_b, b}, {of_a, a}}, {}, resources); });
  named([&](const Resources& resources) { merge_graphs(of_a, a, of_b, b, {}, resources); });
  named([&](const Resources& resources) { extend_graph(of_a, a, b, {}, resources); });
  named([&](const Resources& resources) { refine_graph(of_a, a, {}, resources); });
  named([&](const Resources& resources) { merge_graphs(of_a, there_a, of_b, there_b, {}, resources); });
  named([&](const Resources& resources) { extend_graph(of_a, there_a, there_b, {}, resources); });
  named([&](const Resources& resources) { refine_graph(of_a, there_a, {}, resources); });
}

}  // namespace
}  // namespace kith
