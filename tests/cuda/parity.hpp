// Data and comparisons for the tests that search on a GPU and on the CPU and expect the same bytes.
#pragma once

#include <kith/device.hpp>
#include <kith/error.hpp>
#include <kith/knn.hpp>
#include <kith/neighbors.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace kith {

// Skips, saying so, where there is no GPU.
class OnCuda : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda_devices().empty()) GTEST_SKIP() << "no CUDA device here, or a build without CUDA";
  }
};

inline ResourceOptions cuda_options() {
  ResourceOptions options;
  options.device = Device::cuda(0);
  return options;
}

inline Resources on_cpu() {
  ResourceOptions options;
  options.device = Device::cpu();
  return Resources(options);
}
inline Resources on_cuda() { return Resources(cuda_options()); }

// Vectors of either dtype, with unused elements between the rows where asked for.
struct Vectors {
  std::vector<float> floats;
  std::vector<uint8_t> bytes;
  DType dtype = DType::f32;
  MatrixShape shape;

  MatrixView view() const {
    const void* data = dtype == DType::f32 ? static_cast<const void*>(floats.data()) : bytes.data();
    return {data, dtype, shape};
  }
  float* row(int64_t i) { return floats.data() + i * shape.row_stride; }
};

using Fill = std::function<float(int64_t row, int64_t col)>;

inline Vectors make_vectors(int64_t rows, int64_t cols, const Fill& fill, int64_t gap = 0) {
  Vectors vectors;
  vectors.shape = {rows, cols, cols + gap};
  vectors.floats.assign(static_cast<size_t>(rows * (cols + gap) + 1), -7.0f);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) vectors.row(i)[j] = fill(i, j);
  }
  return vectors;
}

inline Vectors random_vectors(DType dtype, int64_t rows, int64_t cols, uint32_t seed, int64_t gap = 0) {
  std::mt19937 random(seed);
  if (dtype == DType::f32) {
    return make_vectors(
        rows, cols,
        [&](int64_t, int64_t) { return static_cast<float>(std::ldexp(static_cast<double>(random()), -31) - 1.0); },
        gap);
  }
  Vectors vectors;
  vectors.dtype = DType::u8;
  vectors.shape = {rows, cols, cols + gap};
  vectors.bytes.resize(static_cast<size_t>(rows * (cols + gap) + 1));
  for (uint8_t& byte : vectors.bytes) byte = static_cast<uint8_t>(random());
  return vectors;
}

inline void expect_same_bytes(const Neighbors& expected, const Neighbors& found) {
  ASSERT_EQ(expected.queries(), found.queries());
  ASSERT_EQ(expected.k(), found.k());
  for (int64_t q = 0; q < expected.queries(); ++q) {
    for (int64_t i = 0; i < expected.k(); ++i) {
      ASSERT_EQ(expected.ids(q)[i], found.ids(q)[i])
          << "query " << q << " place " << i << ": " << expected.distances(q)[i] << " and " << found.distances(q)[i];
    }
    ASSERT_EQ(std::memcmp(expected.distances(q), found.distances(q), sizeof(float) * static_cast<size_t>(expected.k())),
              0)
        << "query " << q << " has other distances";
  }
}

inline void expect_parity(const Vectors& queries, const Vectors& base, const KnnParams& params,
                          const Resources& cuda = on_cuda()) {
  SCOPED_TRACE(testing::Message() << queries.shape.rows << " queries (" << name_of(queries.dtype) << "), "
                                  << base.shape.rows << " rows (" << name_of(base.dtype) << "), " << base.shape.cols
                                  << " columns, k " << params.k << ", " << name_of(params.metric));
  expect_same_bytes(knn(queries.view(), base.view(), params, on_cpu()), knn(queries.view(), base.view(), params, cuda));
}

inline constexpr Metric kAllMetrics[] = {Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::cosine};

// The text of the exception of type E that `call` throws; "" where it throws none.
template <typename E, typename Call>
std::string text_thrown(const Call& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  return "";
}

}  // namespace kith
