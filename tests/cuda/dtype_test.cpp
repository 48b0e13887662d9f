// Every dtype and every metric on the GPU, against the CPU, bit for bit.
#include "cuda/parity.hpp"

#include "core/half.hpp"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <vector>

namespace kith {
namespace {

constexpr DType kAllDtypes[] = {DType::f32, DType::f16, DType::bf16, DType::u8, DType::i8};
constexpr Metric kEveryMetric[] = {Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::cosine,
                                   Metric::l1, Metric::linf,        Metric::chi_square};

// Values from 0 to 3, or whole numbers for bytes; signed where asked for.
class Stored {
 public:
  Stored(DType dtype, int64_t rows, int64_t cols, uint32_t seed, bool is_signed)
      : dtype_(dtype), shape_{rows, cols, cols}, bytes_(static_cast<size_t>(rows * cols * size_of(dtype))) {
    std::mt19937 random(seed);
    for (int64_t i = 0; i < rows * cols; ++i) put(i, static_cast<int32_t>(random() >> 24) - (is_signed ? 128 : 0));
  }
  MatrixView view() const { return {bytes_.data(), dtype_, shape_}; }

 private:
  void put(int64_t i, int32_t number) {
    const float value = static_cast<float>(number) * 0.0123f;
    switch (dtype_) {
      case DType::f32: return set(i, value);
      case DType::f16: return set(i, half_of(value));
      case DType::bf16: return set(i, bfloat16_of(value));
      case DType::u8: return set(i, static_cast<uint8_t>(std::clamp(number, 0, 255)));
      case DType::i8: return set(i, static_cast<int8_t>(number / 2));
    }
  }
  template <typename T>
  void set(int64_t i, T value) {
    std::memcpy(bytes_.data() + i * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
  }

  DType dtype_;
  MatrixShape shape_;
  std::vector<uint8_t> bytes_;
};

void expect_parity_of(DType query_dtype, DType base_dtype, Metric metric, int64_t queries, int64_t rows, int64_t cols) {
  SCOPED_TRACE(testing::Message() << name_of(query_dtype) << " in " << name_of(base_dtype) << " by " << name_of(metric)
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
