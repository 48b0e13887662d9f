// Searches of few queries among wide rows without operands, which are multiplied as they lie
// (kernels/matrix/stream_product_cuda.hpp): the same bytes as on the CPU, however the rows are stored.
#include "cuda/device_data.hpp"
#include "cuda/parity.hpp"

#include <cstdint>

namespace kith {
namespace {

class CudaStreamSmall : public OnCuda {};
class CudaStream : public OnCuda {};

constexpr Metric kStreamed[] = {Metric::l2, Metric::cosine, Metric::inner_product};

TEST_F(CudaStreamSmall, EveryDtypeAndMetric) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const int64_t cols : {256, 301, 770}) {
      for (const int64_t queries : {1, 70, 128}) {
        const Vectors few = random_vectors(dtype, queries, cols, 1);
        const Vectors base = random_vectors(dtype, 9001, cols, 2);
        for (const Metric metric : kStreamed) expect_parity(few, base, {.k = 10, .metric = metric});
      }
    }
  }
}

TEST_F(CudaStreamSmall, HardData) {
  for_each_hard_data(6000, 272, 7, [&](const Vectors&, const Vectors& base) {
    const Vectors queries = make_vectors(90, 272, [&](int64_t i, int64_t j) {
      return base.floats[static_cast<size_t>(i * 17 % 6000 * 272 + j)] + (i % 3 == 0 ? 0.01f : 0.0f);
    });
    for (const Metric metric : kStreamed) expect_parity(queries, base, {.k = 10, .metric = metric});
  });
}

TEST_F(CudaStream, RowsOnTheDevice) {
  for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{20000, 8192}, {300000, 260}, {5000, 16000}}) {
    const Vectors queries = random_vectors(DType::f32, 100, cols, 1);
    const Vectors base = random_vectors(DType::f32, rows, cols, 2);
    const DeviceMatrix device_queries(queries);
    const DeviceMatrix device_base(base);
    for (const Metric metric : kStreamed) {
      const KnnParams params{.k = 10, .metric = metric};
      expect_same_bytes(knn(queries.view(), base.view(), params, on_cpu()),
                        knn(device_queries.view(), device_base.view(), params, on_cuda()));
    }
  }
}

TEST_F(CudaStream, FiltersAndLittleMemory) {
  const Vectors queries = random_vectors(DType::f32, 110, 300, 1);
  const Vectors base = random_vectors(DType::f32, 60000, 300, 2);
  for (const double share : {0.9, 0.2}) {
    const Filters filters(60000, share, 3);
    expect_parity(queries, base, {.k = 10, .metric = Metric::l2, .filter = filters.by_mask()});
  }
  ResourceOptions options = cuda_options();
  options.device_memory_limit = int64_t{80} << 20;
  const KnnParams params{.k = 10, .metric = Metric::l2};
  expect_same_bytes(knn(queries.view(), base.view(), params, on_cpu()),
                    knn(queries.view(), base.view(), params, Resources(options)));
}

}  // namespace
}  // namespace kith
