// The exact k-NN graph on the GPU against the CPU, its results on the host and in device memory, and what looks for
// signs there.
#include "cuda/device_data.hpp"
#include "cuda/parity.hpp"
#include "graph/same_graph.hpp"

#include <kith/knn_graph.hpp>

#include <string>

namespace kith {
namespace {

class CudaGraphSmall : public OnCuda {};
class CudaGraph : public OnCuda {};

void expect_graph_parity(const MatrixView& x, const KnnGraphParams& params) {
  SCOPED_TRACE(::testing::Message() << x.rows() << " x " << x.cols() << ", k " << params.k << ", "
                                  << name_of(params.metric));
  const KnnGraph expected = knn_graph(x, params, on_cpu());
  expect_same_bytes(expected, knn_graph(x, params, on_cuda()));
  const DeviceMatrix device(x);
  expect_same_bytes(expected, knn_graph(device.view(), params, on_cuda()));
  expect_same_bytes(expected, knn_graph(device.view(), params, Resources()));
  for (const MatrixView& rows : {device.view(), x}) {
    const DeviceResult result(x.rows(), params.k);
    knn_graph(rows, result.view, params, on_cuda());
    expect_same_bytes(expected, result.on_host());
  }
}

TEST_F(CudaGraphSmall, OddShapes) {
  for (const int64_t rows : {1, 2, 7}) {
    expect_graph_parity(Stored(DType::f32, rows, 5, 1, true).view(), {.k = 6});
  }
  expect_graph_parity(Stored(DType::u8, 130, 5, 1, false).view(), {.k = 6, .metric = Metric::chi_square});
}

TEST_F(CudaGraph, EveryMetric) {
  for (const Metric metric : kEveryMetric) {
    const Stored x(DType::f16, 130, 5, 6, metric != Metric::chi_square);
    expect_graph_parity(x.view(), {.k = 6, .metric = metric});
  }
}

TEST_F(CudaGraph, DuplicatesAndProducts) {
  const Vectors noise = random_vectors(DType::f32, 9000, 16, 2);
  const Vectors twice =
      make_vectors(9000, 16, [&](int64_t i, int64_t j) { return noise.floats[static_cast<size_t>(i / 2 * 16 + j)]; });
  for (const Metric metric : kAllMetrics) {
    expect_graph_parity(noise.view(), {.k = 10, .metric = metric});
    expect_graph_parity(twice.view(), {.k = 40, .metric = metric});
  }
  expect_graph_parity(random_vectors(DType::u8, 6000, 20, 3).view(), {.k = 12});
}

TEST_F(CudaGraphSmall, DuplicatesBeforeTheRowItself) {
  const Vectors x = make_vectors(300, 4, [](int64_t i, int64_t) { return static_cast<float>(i % 3); });
  for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::l1}) {
    expect_graph_parity(x.view(), {.k = 5, .metric = metric});
    expect_graph_parity(x.view(), {.k = 310, .metric = metric});
  }
}

// How many threads write a row's neighbours depends on how many there are.
TEST_F(CudaGraph, AnyNumberOfNeighbors) {
  const Vectors noise = random_vectors(DType::f32, 2100, 5, 9);
  const Vectors x =
      make_vectors(2100, 5, [&](int64_t i, int64_t j) { return noise.floats[static_cast<size_t>(i % 700 * 5 + j)]; });
  for (const int64_t k : {1, 2, 3, 16, 17, 32, 33, 255, 257, 1023, 1024, 1025, 2048, 2099, 2105}) {
    expect_graph_parity(x.view(), {.k = k, .metric = k % 2 == 0 ? Metric::l2 : Metric::inner_product});
  }
}

// In batches, of which all but the first begin amid the rows.
TEST_F(CudaGraph, UnderALimit) {
  const Vectors x = random_vectors(DType::f32, 9000, 16, 7);
  const DeviceMatrix device(x);
  for (const Metric metric : {Metric::l2, Metric::l1}) {
    const KnnGraph expected = knn_graph(x.view(), {.k = 10, .metric = metric}, on_cpu());
    ResourceOptions options = cuda_options();
    options.device_memory_limit = int64_t{4} << 20;
    const DeviceResult result(9000, 10);
    knn_graph(device.view(), result.view, {.k = 10, .metric = metric}, Resources(options));
    expect_same_bytes(expected, result.on_host());
  }
}

TEST_F(CudaGraphSmall, OnTheCallersStream) {
  cudaStream_t stream = nullptr;
  KITH_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const Vectors x = random_vectors(DType::f32, 700, 8, 8);
  const KnnGraph expected = knn_graph(x.view(), {.k = 6}, on_cpu());
  const size_t bytes = 700 * 8 * 4;
  const DeviceBytes late(bytes);  // filled on the stream, just before the search, and emptied after it
  const MatrixView rows(late.data(), DType::f32, {700, 8, 8}, MemorySpace::cuda(0));
  const DeviceResult result(700, 6);
  for (int i = 0; i < 3; ++i) {
    KITH_CUDA_CHECK(cudaMemcpyAsync(late.data(), x.floats.data(), bytes, cudaMemcpyHostToDevice, stream));
    knn_graph(rows, result.view, {.k = 6}, on_cuda().with_stream(stream));
    KITH_CUDA_CHECK(cudaMemsetAsync(late.data(), 0, bytes, stream));
    KITH_CUDA_CHECK(cudaStreamSynchronize(stream));
    expect_same_bytes(expected, result.on_host());
  }
  KITH_CUDA_CHECK(cudaStreamDestroy(stream));
}

TEST_F(CudaGraph, DeviceMemoryIsNotForTheCpu) {
  const Vectors x = random_vectors(DType::f32, 20, 4, 4);
  const DeviceResult result(20, 3);
  EXPECT_THROW(knn_graph(x.view(), result.view, {.k = 3}, on_cpu()), Unsupported);
}

TEST_F(CudaGraph, ChiSquareLooksForSignsInDeviceMemory) {
  const Stored good(DType::f32, 300, 8, 5, false);
  Vectors bad = make_vectors(300, 8, [](int64_t i, int64_t j) { return static_cast<float>((i * 7 + j * 3) % 11); });
  const Neighbors expected = knn(good.view(), bad.view(), {.k = 5, .metric = Metric::chi_square}, on_cpu());
  const DeviceMatrix device_good(good.view());
  {
    const DeviceMatrix device(bad);
    expect_same_bytes(expected, knn(device_good.view(), device.view(), {.k = 5, .metric = Metric::chi_square}));
  }
  bad.row(217)[7] = -0.5f;
  const DeviceMatrix device(bad);
  const auto text = [&](const MatrixView& queries, const MatrixView& base, const Resources& resources) {
    return text_thrown<InvalidArgument>([&] { knn(queries, base, {.k = 5, .metric = Metric::chi_square}, resources); });
  };
  EXPECT_NE(text(device_good.view(), device.view(), on_cuda()).find("base row 217"), std::string::npos);
  EXPECT_EQ(text(device_good.view(), device.view(), on_cuda()), text(good.view(), bad.view(), on_cpu()));
  EXPECT_EQ(text(device.view(), device_good.view(), on_cuda()), text(bad.view(), good.view(), on_cpu()));
}

}  // namespace
}  // namespace kith
