// Fits on a GPU and on the CPU that must give the same bytes.
#pragma once

#include "cluster/fitted.hpp"
#include "cuda/parity.hpp"
#include "reference/data.hpp"

#include <cstring>
#include <vector>

namespace kith {

// Rows of any dtype, rounded from floats.
struct TypedRows {
  std::vector<std::byte> bytes;
  DType dtype = DType::f32;
  MatrixShape shape;

  TypedRows(DType type, const reference::Matrix<float>& from, float scale = 1, int64_t gap = 0) : dtype(type) {
    shape = {from.rows, from.cols, from.cols + gap};
    bytes.resize(static_cast<size_t>(shape.rows * shape.row_stride * size_of(type) + 16));
    for (int64_t i = 0; i < from.rows; ++i) {
      for (int64_t c = 0; c < from.cols; ++c) {
        store_as(type, from.row(i)[c] * scale + (type == DType::u8 ? 128.0f : 0.0f),
                 bytes.data() + (i * shape.row_stride + c) * size_of(type));
      }
    }
  }
  MatrixView view() const { return {bytes.data(), dtype, shape}; }
};

inline void expect_same_fit(const Fitted& expected, const Fitted& found) {
  EXPECT_EQ(expected.iterations, found.iterations);
  EXPECT_EQ(expected.history, found.history);
  EXPECT_EQ(expected.objective, found.objective);
  EXPECT_EQ(expected.labels, found.labels);
  EXPECT_EQ(expected.counts, found.counts);
  ASSERT_EQ(expected.centres.size(), found.centres.size());
  EXPECT_EQ(std::memcmp(expected.centres.data(), found.centres.data(), expected.centres.size() * 4), 0)
      << "other centres";
}

inline void expect_fit_parity(const MatrixView& rows, const KMeansParams& params, const KMeansInput& input = {},
                              const Resources& cuda = on_cuda()) {
  SCOPED_TRACE(::testing::Message() << rows.rows() << " x " << rows.cols() << " (" << name_of(rows.dtype()) << ") to "
                                  << params.clusters << (params.spherical ? ", spherical" : "") << ", seed "
                                  << params.seed);
  expect_same_fit(fit(rows, params, input), fit(rows, params, input, cuda));
}

inline KMeansParams random_start(int64_t clusters, int64_t iterations, uint64_t seed = 1) {
  KMeansParams params;
  params.clusters = clusters;
  params.iterations = iterations;
  params.init = KMeansInit::random;
  params.seed = seed;
  return params;
}

inline Resources with_device_limit(int64_t bytes) {
  ResourceOptions options = cuda_options();
  options.device_memory_limit = bytes;
  return Resources(options);
}

}  // namespace kith
