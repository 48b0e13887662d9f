// Searches of what lies in a GPU's memory, with results there, on the caller's stream.
#include "cuda/device_data.hpp"
#include "cuda/parity.hpp"

#include <kith/index.hpp>

#include <cstdlib>
#include <tuple>

namespace kith {
namespace {

class CudaDeviceMemory : public OnCuda {};

TEST_F(CudaDeviceMemory, QueriesBaseAndResultsEachWhereTheyLie) {
  const Vectors queries = random_vectors(DType::f32, 60, 24, 1, 4);
  for (const int64_t rows : {300, 9000}) {
    const Vectors base = random_vectors(DType::f32, rows, 24, 2, 8);
    const DeviceMatrix device_queries(queries);
    const DeviceMatrix device_base(base);
    for (const Metric metric : kAllMetrics) {
      const KnnParams params{.k = 12, .metric = metric};
      const Neighbors expected = knn(queries.view(), base.view(), params, on_cpu());
      expect_same_bytes(expected, knn(device_queries.view(), device_base.view(), params, on_cuda()));
      expect_same_bytes(expected, knn(queries.view(), device_base.view(), params, Resources()));  // where the data is
      DeviceResult result(60, 12);
      knn(device_queries.view(), base.view(), result.view, params, on_cuda());
      expect_same_bytes(expected, result.on_host());
    }
  }
}

// The direct engine looks at the rows where it reads them; the smallest is named, whoever finds one first.
TEST_F(CudaDeviceMemory, FewQueriesNameTheFirstRowThatIsNotFinite) {
  for (const int64_t cols : {9, 24}) {
    Vectors base = random_vectors(DType::f32, 60000, cols, 5);
    const Vectors queries = random_vectors(DType::f32, 8, cols, 6);
    for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::l1, Metric::cosine}) {
      const DeviceMatrix good(base);
      expect_same_bytes(knn(queries.view(), base.view(), {.k = 5, .metric = metric}, on_cpu()),
                        knn(queries.view(), good.view(), {.k = 5, .metric = metric}, on_cuda()));
    }
    base.row(59999)[0] = NAN;
    base.row(31234)[cols - 1] = -INFINITY;
    const DeviceMatrix bad(base);
    for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::l1, Metric::cosine}) {
      const auto text =
          text_thrown<InvalidArgument>([&] { knn(queries.view(), bad.view(), {.k = 5, .metric = metric}, on_cuda()); });
      EXPECT_NE(text.find("row 31234"), std::string::npos) << text;
    }
  }
}

TEST_F(CudaDeviceMemory, OnTheCallersStream) {
  cudaStream_t stream = nullptr;
  KITH_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const Vectors queries = random_vectors(DType::u8, 300, 40, 3);
  const Vectors base = random_vectors(DType::u8, 20000, 40, 4);
  const Neighbors expected = knn(queries.view(), base.view(), {.k = 10}, on_cpu());
  const DeviceMatrix device_base(base);
  DeviceBytes late(static_cast<size_t>(300 * 40));  // filled on the stream, just before the search
  const MatrixView late_view(late.data(), DType::u8, {300, 40, 40}, MemorySpace::cuda(0));
  DeviceResult result(300, 10);
  for (int i = 0; i < 3; ++i) {
    KITH_CUDA_CHECK(cudaMemsetAsync(late.data(), 0, 300 * 40, stream));
    KITH_CUDA_CHECK(cudaMemcpyAsync(late.data(), queries.bytes.data(), 300 * 40, cudaMemcpyHostToDevice, stream));
    knn(late_view, device_base.view(), result.view, {.k = 10}, on_cuda().with_stream(stream));
    KITH_CUDA_CHECK(cudaStreamSynchronize(stream));
    expect_same_bytes(expected, result.on_host());
  }
  KITH_CUDA_CHECK(cudaStreamDestroy(stream));
}

// So few that every key is computed, and what is selected becomes results at once.
TEST_F(CudaDeviceMemory, FewQueriesAndRowsAndMoreNeighborsThanRows) {
  for (const auto& [queries, rows, k] : {std::tuple{1, 3000, 10}, {8, 3000, 10}, {5, 9, 20}, {3, 70, 70}}) {
    const Vectors asked = random_vectors(DType::f32, queries, 20, 31);
    const Vectors base = random_vectors(DType::f32, rows, 20, 32);
    const DeviceMatrix device_queries(asked);
    const DeviceMatrix device_base(base);
    for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine, Metric::l1, Metric::linf}) {
      SCOPED_TRACE(::testing::Message() << queries << " queries, " << rows << " rows, " << name_of(metric));
      const KnnParams params{.k = k, .metric = metric};
      DeviceResult result(queries, k);
      knn(device_queries.view(), device_base.view(), result.view, params, on_cuda());
      expect_same_bytes(knn(asked.view(), base.view(), params, on_cpu()), result.on_host());
    }
  }
}

TEST_F(CudaDeviceMemory, NotFiniteRowsAreRefusedAfterResultsWereWritten) {
  const Vectors good = random_vectors(DType::f32, 300, 20, 33);
  Vectors bad = good;
  bad.row(123)[7] = NAN;
  const DeviceMatrix device_good(good);
  const DeviceMatrix device_bad(bad);
  DeviceResult result(300, 4);
  const auto text = [&](const DeviceMatrix& queries, const DeviceMatrix& base) {
    return text_thrown<InvalidArgument>([&] { knn(queries.view(), base.view(), result.view, {.k = 4}, on_cuda()); });
  };
  EXPECT_NE(text(device_good, device_bad).find("base row 123"), std::string::npos);
  EXPECT_NE(text(device_bad, device_good).find("query row 123"), std::string::npos);
}

TEST_F(CudaDeviceMemory, AnIndexTakesDeviceQueries) {
  const Vectors queries = random_vectors(DType::f32, 1, 32, 5);
  const Vectors base = random_vectors(DType::f32, 30000, 32, 6);
  const DeviceMatrix device_queries(queries);
  Index index("Flat", {.metric = Metric::cosine});
  index.add(base.view(), Ownership::borrow, on_cuda());
  DeviceResult result(1, 7);
  index.search(device_queries.view(), result.view, {.k = 7}, on_cuda());
  expect_same_bytes(knn(queries.view(), base.view(), {.k = 7, .metric = Metric::cosine}, on_cpu()), result.on_host());
}

TEST_F(CudaDeviceMemory, AnIndexKeepsRowsWhereTheyLie) {
  const Vectors queries = random_vectors(DType::f32, 40, 24, 21);
  const Vectors first = random_vectors(DType::f32, 9000, 24, 22, 8);
  const Vectors second = random_vectors(DType::f32, 700, 24, 23);
  const Vectors third = random_vectors(DType::f32, 300, 24, 24);
  for (const bool prepare : {true, false}) {
    for (const Metric metric : {Metric::l2, Metric::cosine, Metric::l1}) {
      Index expected("Flat", {.metric = metric});
      Index index("Flat", {.metric = metric, .prepare = prepare});
      const DeviceMatrix borrowed(first);
      index.add(borrowed.view(), Ownership::borrow);
      expected.add(first.view(), Ownership::copy, on_cpu());
      for (const Vectors* part : {&second, &third}) {  // small ones, which are merged
        const DeviceMatrix gone(*part);
        index.add(gone.view(), Ownership::copy);
        expected.add(part->view(), Ownership::copy, on_cpu());
      }
      const Neighbors true_ones = expected.search(queries.view(), {.k = 9}, on_cpu());
      expect_same_bytes(true_ones, index.search(queries.view(), {.k = 9}));
      const DeviceMatrix device_queries(queries);
      DeviceResult result(40, 9);
      index.search(device_queries.view(), result.view, {.k = 9}, on_cuda());
      expect_same_bytes(true_ones, result.on_host());
    }
  }
}

TEST_F(CudaDeviceMemory, AnIndexCopiesOnTheCallersStream) {
  cudaStream_t stream = nullptr;
  KITH_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const Vectors base = random_vectors(DType::f32, 20000, 16, 25);
  const size_t bytes = 20000 * 16 * 4;
  DeviceBytes late(bytes);
  const MatrixView view(late.data(), DType::f32, {20000, 16, 16}, MemorySpace::cuda(0));
  KITH_CUDA_CHECK(cudaMemcpyAsync(late.data(), base.floats.data(), bytes, cudaMemcpyHostToDevice, stream));
  Index index("Flat");
  index.add(view, Ownership::copy, Resources().with_stream(stream));
  KITH_CUDA_CHECK(cudaMemsetAsync(late.data(), 0, bytes, stream));  // the copy has been made
  const MatrixView queries = base.view().slice(0, 50);
  expect_same_bytes(knn(queries, base.view(), {.k = 5}, on_cpu()), index.search(queries, {.k = 5}));
  KITH_CUDA_CHECK(cudaStreamSynchronize(stream));
  KITH_CUDA_CHECK(cudaStreamDestroy(stream));
}

TEST_F(CudaDeviceMemory, RowsComeFromHostAndDeviceAlike) {
  const Vectors base = random_vectors(DType::f32, 3000, 12, 29);
  const DeviceMatrix there(base);
  const MatrixView queries = base.view().slice(100, 40);
  const Neighbors expected = knn(queries, base.view(), {.k = 5}, on_cpu());
  for (const char* const factory : {"Flat", "PQ3,RFlat"}) {
    for (const bool device_first : {true, false}) {
      for (const Ownership ownership : {Ownership::copy, Ownership::borrow}) {
        SCOPED_TRACE(std::string(factory) + (device_first ? ", device first" : ", host first"));
        Index index(factory);
        index.train(base.view(), on_cpu());
        for (int64_t first = 0; first < 3000; first += 1000) {
          const bool from_device = (first == 1000) != device_first;
          index.add((from_device ? there.view() : base.view()).slice(first, 1000), ownership);
        }
        const int64_t refine = std::string(factory) == "Flat" ? 0 : 600;
        expect_same_bytes(expected, index.search(queries, {.k = 5, .refine = refine}));
      }
    }
  }
  Index on_host("Flat");
  on_host.add(there.view(), Ownership::copy, on_cpu());
  EXPECT_EQ(on_host.device(), Device::cpu());
  expect_same_bytes(expected, on_host.search(queries, {.k = 5}, on_cpu()));
}

TEST_F(CudaDeviceMemory, AnIndexRefusesWhatItCannotKeep) {
  Vectors base = random_vectors(DType::f32, 5000, 8, 26);
  const DeviceMatrix good(base);
  base.row(4321)[5] = NAN;
  const DeviceMatrix bad(base);
  Index index("Flat");
  index.add(good.view());
  const auto refused = [&](const MatrixView& rows, const Resources& resources = Resources()) {
    return text_thrown<InvalidArgument>([&] { index.add(rows, Ownership::copy, resources); });
  };
  EXPECT_NE(refused(bad.view()).find("row 9321"), std::string::npos);
  EXPECT_NE(refused(base.view().slice(4321, 10)).find("row 0"), std::string::npos);  // from the host
  EXPECT_EQ(index.size(), 5000);
  Index unprepared("Flat", {.prepare = false});  // looks at its rows when they are searched
  unprepared.add(bad.view());
  const auto search_unprepared = [&] { (void)unprepared.search(base.view().slice(0, 3), {.k = 2}); };
  EXPECT_NE(text_thrown<InvalidArgument>(search_unprepared).find("row 4321"), std::string::npos);
  for (const bool prepare : {true, false}) {
    Index histograms("Flat", {.metric = Metric::chi_square, .prepare = prepare});
    const auto use = [&] {
      histograms.add(good.view());
      (void)histograms.search(random_vectors(DType::u8, 2, 8, 27).view(), {.k = 2});
    };
    EXPECT_NE(text_thrown<InvalidArgument>(use).find("base row 0 holds a value below zero"), std::string::npos);
  }
}

TEST_F(CudaDeviceMemory, AnEmptyBaseGivesPadding) {
  const Vectors queries = random_vectors(DType::f32, 3, 8, 7);
  const DeviceMatrix device_queries(queries);
  DeviceResult result(3, 4);
  const Vectors nothing = random_vectors(DType::f32, 0, 8, 8);
  for (const Metric metric : {Metric::l2, Metric::inner_product}) {
    const KnnParams params{.k = 4, .metric = metric};
    knn(device_queries.view(), nothing.view(), result.view, params, on_cuda());
    expect_same_bytes(knn(queries.view(), nothing.view(), params, on_cpu()), result.on_host());
  }
}

TEST_F(CudaDeviceMemory, MoreResultsThanRowsArePadded) {
  const Vectors queries = random_vectors(DType::f32, 2, 8, 9);
  const Vectors base = random_vectors(DType::f32, 5, 8, 10);
  DeviceResult result(2, 9);
  knn(queries.view(), base.view(), result.view, {.k = 9, .metric = Metric::inner_product}, on_cuda());
  expect_same_bytes(knn(queries.view(), base.view(), {.k = 9, .metric = Metric::inner_product}, on_cpu()),
                    result.on_host());
}

TEST_F(CudaDeviceMemory, NotFiniteIsRefused) {
  Vectors base = random_vectors(DType::f32, 9000, 8, 11);
  base.row(8765)[3] = NAN;
  const Vectors queries = random_vectors(DType::f32, 2, 8, 12);
  const DeviceMatrix device_base(base);
  EXPECT_NE(
      text_thrown<InvalidArgument>([&] { knn(queries.view(), device_base.view(), {.k = 3}, on_cuda()); }).find("8765"),
      std::string::npos);
  EXPECT_NE(text_thrown<InvalidArgument>([&] {
              knn(device_base.view(), queries.view(), {.k = 1}, on_cuda());
            }).find("query row 8765"),
            std::string::npos);
}

TEST_F(CudaDeviceMemory, WhatThePoolKeepsCountsAsFree) {
  const Vectors queries = random_vectors(DType::f32, 4096, 16, 14);
  const Vectors base = random_vectors(DType::f32, 200000, 16, 15);
  (void)knn(queries.view().slice(0, 10), base.view(), {.k = 3}, on_cuda());
  const int64_t before = cuda_devices().front().memory_free;
  (void)knn(queries.view(), base.view(), {.k = 3}, on_cuda());  // hundreds of megabytes, which the pool keeps
  const int64_t after = cuda_devices().front().memory_free;
  EXPECT_LT(std::abs(before - after), int64_t{32} << 20) << before << " and " << after;
}

TEST_F(CudaDeviceMemory, DataOnTheGpuIsNotForTheCpu) {
  const Vectors vectors = random_vectors(DType::f32, 5, 8, 13);
  const DeviceMatrix device(vectors);
  EXPECT_THROW(knn(device.view(), vectors.view(), {.k = 2}, on_cpu()), Unsupported);
}

}  // namespace
}  // namespace kith
