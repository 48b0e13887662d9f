// The GPU against the CPU, bit for bit, on shapes that need many tiles, on hard data, under limits and with many
// threads.
#include "cuda/parity.hpp"

#include <kith/index.hpp>

#include <thread>
#include <vector>

namespace kith {
namespace {

class CudaKnn : public OnCuda {};

TEST_F(CudaKnn, ManyColumns) {
  for (const int64_t cols : {128, 129, 784}) {
    for (const Metric metric : kAllMetrics) {
      expect_parity(random_vectors(DType::f32, 33, cols, 1), random_vectors(DType::f32, 3000, cols, 2),
                    {.k = 10, .metric = metric});
      expect_parity(random_vectors(DType::u8, 33, cols, 1), random_vectors(DType::u8, 3000, cols, 2),
                    {.k = 10, .metric = metric});
    }
  }
}

// The plan's tiles are 1,024 queries and 16,384 rows at that many.
TEST_F(CudaKnn, AroundThePlansTiles) {
  for (const int64_t queries : {1023, 1024, 1025}) {
    for (const int64_t rows : {16383, 16384, 16385, 33000}) {
      expect_parity(random_vectors(DType::u8, queries, 8, 3), random_vectors(DType::f32, rows, 8, 4), {.k = 20});
    }
  }
}

TEST_F(CudaKnn, OneQueryAndManyRows) {
  const Vectors base = random_vectors(DType::f32, 300000, 16, 5);
  for (const int64_t k : {1, 100, 5000}) expect_parity(random_vectors(DType::f32, 1, 16, 6), base, {.k = k});
}

TEST_F(CudaKnn, LargeK) {
  const Vectors base = random_vectors(DType::f32, 20000, 5, 7);
  for (const int64_t k : {4096, 19999, 20000, 20001})
    expect_parity(random_vectors(DType::f32, 3, 5, 8), base, {.k = k});
}

TEST_F(CudaKnn, HardData) {
  for_each_hard_data(20000, 24, 9, [](const Vectors& queries, const Vectors& base) {
    for (const Metric metric : kAllMetrics) expect_parity(queries, base, {.k = 50, .metric = metric});
  });
}

TEST_F(CudaKnn, EveryLimitGivesTheSameBytes) {
  const Vectors queries = random_vectors(DType::f32, 300, 32, 10);
  const Vectors base = random_vectors(DType::u8, 30000, 32, 11);
  for (const int64_t limit : {int64_t{64} << 10, int64_t{1} << 20, int64_t{16} << 20}) {
    ResourceOptions options = cuda_options();
    options.device_memory_limit = limit;
    expect_parity(queries, base, {.k = 25, .metric = Metric::cosine}, Resources(options));
  }
}

TEST_F(CudaKnn, NamesALateRow) {
  Vectors base = random_vectors(DType::f32, 50000, 6, 12);
  base.row(49998)[5] = NAN;
  const Vectors queries = random_vectors(DType::f32, 1100, 6, 13);
  const auto text = [&](const Resources& resources) {
    return text_thrown<InvalidArgument>([&] { knn(queries.view(), base.view(), {.k = 2}, resources); });
  };
  EXPECT_NE(text(on_cuda()).find("49998"), std::string::npos);
  EXPECT_EQ(text(on_cuda()), text(on_cpu()));
}

TEST_F(CudaKnn, CancelStopsTheSearch) {
  const Vectors queries = random_vectors(DType::f32, 2000, 16, 14);
  const Vectors base = random_vectors(DType::f32, 200000, 16, 15);
  ResourceOptions options = cuda_options();
  options.cancel.request();
  EXPECT_THROW(knn(queries.view(), base.view(), {.k = 3}, Resources(options)), Cancelled);

  // Asked for in the middle, by the sink that hears of the progress: so many small tiles take seconds.
  ResourceOptions later = cuda_options();
  later.device_memory_limit = 32 << 10;
  const CancelToken token = later.cancel;
  later.progress = [token](const Progress&) { token.request(); };
  EXPECT_THROW(knn(queries.view(), base.view(), {.k = 3}, Resources(later)), Cancelled);
}

TEST_F(CudaKnn, ProgressEndsAtAll) {
  const Vectors vectors = random_vectors(DType::f32, 1500, 8, 16);
  ResourceOptions options = cuda_options();
  int64_t done = 0;
  int64_t total = -1;
  options.progress = [&](const Progress& progress) {
    EXPECT_GE(progress.done, done);
    EXPECT_LE(progress.done, progress.total);
    done = progress.done;
    total = progress.total;
  };
  knn(vectors.view(), vectors.view(), {.k = 3}, Resources(options));
  EXPECT_EQ(done, total);
}

TEST_F(CudaKnn, ManyThreadsSearchOneIndex) {
  const Vectors base = random_vectors(DType::f32, 20000, 24, 17);
  const Vectors queries = random_vectors(DType::f32, 64, 24, 18);
  Index index("Flat", {.metric = Metric::cosine});
  const Resources resources = on_cuda();
  index.add(base.view(), Ownership::borrow, resources);
  const Neighbors expected = knn(queries.view(), base.view(), {.k = 30, .metric = Metric::cosine}, on_cpu());
  std::vector<Neighbors> found(8);
  std::vector<std::thread> threads;
  for (Neighbors& result : found) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) result = index.search(queries.view(), {.k = 30}, resources);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Neighbors& result : found) expect_same_bytes(expected, result);
}

TEST_F(CudaKnn, NothingStaysReserved) {
  const Vectors vectors = random_vectors(DType::f32, 500, 8, 19);
  ResourceOptions options = cuda_options();
  options.device_memory_limit = 200000;
  const Resources resources(options);
  for (int i = 0; i < 20; ++i) knn(vectors.view(), vectors.view(), {.k = 3}, resources);  // would run out if kept
}

TEST_F(CudaKnn, ADeviceThatIsNotThereIsRefused) {
  const Vectors vectors = random_vectors(DType::f32, 5, 8, 20);
  EXPECT_THROW(knn(vectors.view(), vectors.view(), {.k = 3}, on_cuda().with_device(Device::cuda(99))), Error);
}

}  // namespace
}  // namespace kith
