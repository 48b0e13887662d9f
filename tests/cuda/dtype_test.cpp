// Every dtype and every metric on the GPU, against the CPU, bit for bit.
#include "cuda/parity.hpp"

namespace kith {
namespace {

void expect_parity_of(DType query_dtype, DType base_dtype, Metric metric, int64_t queries, int64_t rows, int64_t cols) {
  SCOPED_TRACE(::testing::Message() << name_of(query_dtype) << " in " << name_of(base_dtype) << " by " << name_of(metric)
                                  << ", " << rows << " rows");
  const bool is_signed = metric != Metric::chi_square;
  const Stored q(query_dtype, queries, cols, 1, is_signed);
  const Stored b(base_dtype, rows, cols, 2, is_signed);
  const KnnParams params{.k = 9, .metric = metric};
  expect_same_bytes(knn(q.view(), b.view(), params, on_cpu()), knn(q.view(), b.view(), params, on_cuda()));
}

class CudaDtypesSmall : public OnCuda {};
class CudaDtypes : public OnCuda {};

TEST_F(CudaDtypesSmall, EveryPairAndMetricDirectly) {
  for (const DType query_dtype : kAllDtypes) {
    for (const DType base_dtype : kAllDtypes) {
      for (const Metric metric : kEveryMetric) expect_parity_of(query_dtype, base_dtype, metric, 3, 90, 21);
    }
  }
}

TEST_F(CudaDtypesSmall, Hamming) { expect_parity_of(DType::u8, DType::u8, Metric::hamming, 5, 200, 19); }

// Long enough for products.
TEST_F(CudaDtypes, EveryDtypeThroughProducts) {
  for (const DType dtype : kAllDtypes) {
    for (const Metric metric : kAllMetrics) {
      expect_parity_of(dtype, dtype, metric, 70, 9000, 48);
      expect_parity_of(DType::f32, dtype, metric, 70, 9000, 48);
    }
  }
}

TEST_F(CudaDtypes, NegativeValuesAreRefusedByChiSquare) {
  const Stored good(DType::f32, 10, 8, 3, false);
  const Stored bad(DType::i8, 10, 8, 3, true);
  const KnnParams params{.k = 2, .metric = Metric::chi_square};
  const auto text = [&](const Stored& q, const Stored& b, const Resources& resources) {
    return text_thrown<InvalidArgument>([&] { knn(q.view(), b.view(), params, resources); });
  };
  EXPECT_NE(text(good, bad, on_cuda()), "");
  EXPECT_EQ(text(good, bad, on_cuda()), text(good, bad, on_cpu()));
  EXPECT_EQ(text(bad, good, on_cuda()), text(bad, good, on_cpu()));
}

}  // namespace
}  // namespace kith
