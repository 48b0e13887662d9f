// A metric of one's own on the GPU against the CPU.
#include "cuda/custom_metric_search.hpp"
#include "cuda/device_data.hpp"
#include "cuda/parity.hpp"

#include <string>

namespace kith {
namespace {

class CudaCustomMetricSmall : public OnCuda {};
class CudaCustomMetric : public OnCuda {};

void expect_custom_parity(TestMetric metric, const MatrixView& queries, const MatrixView& base,
                          const CustomKnnParams& params, const Resources& cuda = on_cuda()) {
  SCOPED_TRACE(::testing::Message() << queries.rows() << " queries, " << base.rows() << " x " << base.cols() << ", k "
                                  << params.k);
  const Neighbors expected = search_by(metric, queries, base, params, on_cpu());
  expect_same_bytes(expected, search_by_cuda(metric, queries, base, params, cuda));
  const DeviceMatrix device(base);
  expect_same_bytes(expected, search_by_cuda(metric, queries, device.view(), params, cuda.with_device({})));
}

TEST_F(CudaCustomMetricSmall, OddShapes) {
  for (const int64_t cols : {1, 17, 40}) {
    for (const int64_t rows : {1, 65, 300}) {
      expect_custom_parity(TestMetric::canberra, random_vectors(DType::f32, 33, cols, 1, 2).view(),
                           random_vectors(DType::f32, rows, cols, 2, 1).view(), {.k = 9});
    }
  }
}

TEST_F(CudaCustomMetricSmall, EveryDtypeAndFilter) {
  for (const DType dtype : kAllDtypes) {
    const Stored queries(dtype, 5, 20, 3, true);
    const Stored base(dtype, 200, 20, 4, true);
    const Filters filters(200, 0.3, 5);
    expect_custom_parity(TestMetric::canberra, queries.view(), base.view(), {12, true, filters.by_bits()});
  }
}

TEST_F(CudaCustomMetric, FiltersOfEveryShare) {
  const Vectors queries = random_vectors(DType::f32, 40, 20, 7);
  const Vectors base = random_vectors(DType::f32, 5000, 20, 8);
  for (const double share : {0.0, 0.001, 0.5, 0.99}) {
    const Filters filters(5000, share, 9);
    expect_custom_parity(TestMetric::canberra, queries.view(), base.view(), {12, true, filters.by_rows()});
  }
}

TEST_F(CudaCustomMetric, ManyTilesLimitsAndAMetricWithAParameter) {
  const Vectors queries =
      make_vectors(300, 9, [](int64_t i, int64_t j) { return static_cast<float>((i * 31 + j * 17) % 23); });
  const Vectors base =
      make_vectors(40000, 9, [](int64_t i, int64_t j) { return static_cast<float>((i * 13 + j * 7) % 29); });
  expect_custom_parity(TestMetric::weighted, queries.view(), base.view(), {.k = 100});
  ResourceOptions options = cuda_options();
  options.device_memory_limit = 600 << 10;
  expect_custom_parity(TestMetric::weighted, queries.view(), base.view(), {.k = 100}, Resources(options));
}

TEST_F(CudaCustomMetric, RefusesWhatItCannotDo) {
  Vectors x = random_vectors(DType::f32, 50, 4, 6);
  EXPECT_THROW(search_by_cuda(TestMetric::canberra, x.view(), x.view(), {.k = 3}, on_cpu()), Unsupported);
  EXPECT_THROW(search_by_cuda(TestMetric::canberra, x.view(), x.view(), {.k = 0}, on_cuda()), InvalidArgument);
  x.row(31)[2] = INFINITY;
  EXPECT_NE(text_thrown<InvalidArgument>([&] {
              search_by_cuda(TestMetric::canberra, x.view().slice(0, 3), x.view(), {.k = 3}, on_cuda());
            }).find("base row 31"),
            std::string::npos);
  ResourceOptions options = cuda_options();
  options.cancel.request();
  EXPECT_THROW(
      search_by_cuda(TestMetric::canberra, x.view().slice(0, 3), x.view().slice(0, 9), {.k = 3}, Resources(options)),
      Cancelled);
}

}  // namespace
}  // namespace kith
