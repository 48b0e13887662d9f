// The distance kernels of the GPU, each for every task that it can do, against the CPU: bit for bit.
#include "cuda/device_data.hpp"
#include "cuda/parity.hpp"

#include <kith/pairwise_distances.hpp>

#include "cuda/float_quotients.hpp"
#include "kernels/distance/distance_cuda.hpp"
#include "kernels/distance/inspect_rows_cuda.hpp"
#include "reference/brute_force.hpp"
#include "reference/data.hpp"

#include <cmath>
#include <vector>

namespace kith {
namespace {

class CudaDistanceSmall : public OnCuda {};
class CudaDistance : public OnCuda {};

bool multiplies_doubles() {
  int major = 0;
  KITH_CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
  return major >= 9;
}

void expect_same_distances(const MatrixView& x, const MatrixView& y, Metric metric) {
  SCOPED_TRACE(::testing::Message() << x.rows() << " and " << y.rows() << " x " << x.cols() << ", " << name_of(metric)
                                    << ", " << name_of(x.dtype()) << " and " << name_of(y.dtype()));
  const MatrixBuffer expected = pairwise_distances(x, y, {metric}, on_cpu());
  const DeviceMatrix queries(x);
  const DeviceMatrix rows(y);
  const DeviceBytes query_norms(static_cast<size_t>(x.rows()) * 8);
  const DeviceBytes row_norms(static_cast<size_t>(y.rows()) * 8);
  const int64_t stride = y.rows() + 5;
  const size_t bytes = static_cast<size_t>(x.rows() * stride) * 4;
  const DeviceBytes keys(bytes);
  DistanceTask task;
  task.queries = {queries.view().data(), x.dtype(), x.row_stride(), x.rows()};
  task.rows = {rows.view().data(), y.dtype(), y.row_stride(), y.rows()};
  task.cols = x.cols();
  task.kind = key_kind(metric);
  task.keys = static_cast<uint32_t*>(keys.data());
  task.stride = stride;
  task.form = KeyForm::distance;
  if (metric == Metric::cosine) {
    task.queries.inverse_norms = static_cast<double*>(query_norms.data());
    task.rows.inverse_norms = static_cast<double*>(row_norms.data());
    launch_inspect_rows(task.queries, x.cols(), {.inverse_norms = static_cast<double*>(query_norms.data())}, nullptr);
    launch_inspect_rows(task.rows, x.cols(), {.inverse_norms = static_cast<double*>(row_norms.data())}, nullptr);
  }
  std::vector<uint32_t> found(static_cast<size_t>(x.rows() * stride));
  const auto expect_kernel = [&](const char* name, auto launch) {
    KITH_CUDA_CHECK(cudaMemset(keys.data(), 0x5A, bytes));
    launch(task, nullptr);
    keys.read(found.data());
    for (int64_t i = 0; i < task.queries.count; ++i) {
      const uint32_t* const row = found.data() + i * stride;
      ASSERT_EQ(std::memcmp(expected.view().row(i), row, static_cast<size_t>(y.rows()) * 4), 0)
          << name << ", row " << i << " of x";
      for (int64_t j = y.rows(); j < stride; ++j) ASSERT_EQ(row[j], 0x5A5A5A5Au) << name << " writes past a row";
    }
  };
  if (metric == Metric::hamming) return expect_kernel("bits", launch_bit_distance);
  expect_kernel("lanes", launch_lane_distance);
  if (is_product(task.kind) && multiplies_doubles()) expect_kernel("certain", launch_certain_distance);
  if (x.cols() <= kFewColumns) expect_kernel("few columns", launch_few_columns_distance);
  if (is_product(task.kind) && multiplies_doubles() && x.dtype() == DType::f32) {
    task.centre = static_cast<const float*>(task.queries.data) + x.rows() / 2 * x.row_stride();
    expect_kernel("certain, around a centre", launch_certain_distance);
    task.centre = nullptr;
  }
  for (const int64_t few : {1, 2, 3, 4}) {
    task.queries.count = std::min(few, x.rows());
    if (suits_few_queries(task)) expect_kernel("few queries", launch_few_queries_distance);
  }
}

TEST_F(CudaDistanceSmall, OddShapes) {
  for (const int64_t cols : {1, 3, 8, 16, 17, 33}) {
    const Stored x(DType::f32, 3, cols, 1, true);
    const Stored y(DType::f32, 67, cols, 2, true);
    for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine, Metric::linf}) {
      expect_same_distances(x.view(), y.view(), metric);
    }
  }
  const Stored bits(DType::u8, 66, 19, 3, false);
  expect_same_distances(bits.view(), bits.view(), Metric::hamming);
}

TEST_F(CudaDistance, EveryColumnCount) {
  const auto expect_cols = [](int64_t cols) {
    const Stored x(DType::f32, 9, cols, 1, true);
    const Stored y(DType::f32, 70, cols, 2, true);
    for (const Metric metric : kAllMetrics) expect_same_distances(x.view(), y.view(), metric);
    expect_same_distances(x.view(), y.view(), Metric::l1);
    const Stored bits(DType::u8, 70, cols, 3, false);
    expect_same_distances(bits.view(), bits.view(), Metric::hamming);
  };
  for (int64_t cols = 1; cols <= 40; ++cols) expect_cols(cols);
  for (const int64_t cols : {63, 64, 65, 127, 128, 129, 130, 784, 8193}) expect_cols(cols);
}

TEST_F(CudaDistance, RowsAroundTheTiles) {
  const Stored all(DType::f32, 200, 21, 4, true);
  for (const int64_t queries : {1, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 130}) {
    for (const int64_t rows : {1, 31, 32, 33, 63, 64, 65, 129}) {
      const MatrixView x = all.view().slice(0, queries);
      const MatrixView y = all.view().slice(200 - rows, rows);
      expect_same_distances(x, y, Metric::l2);
      expect_same_distances(x, y, Metric::l1);
    }
  }
}

TEST_F(CudaDistance, EveryMetricAndPairOfDtypes) {
  for (const DType query : kAllDtypes) {
    for (const DType base : kAllDtypes) {
      for (const int64_t cols : {6, 43, 64}) {
        for (const Metric metric : kEveryMetric) {
          const bool is_signed = metric != Metric::chi_square;
          const Stored x(query, 5, cols, 5, is_signed);
          const Stored y(base, 70, cols, 6, is_signed);
          expect_same_distances(x.view(), y.view(), metric);
        }
      }
    }
  }
}

TEST_F(CudaDistance, HardData) {
  for_each_hard_data(300, 37, 7, [](const Vectors& queries, const Vectors& base) {
    for (const Metric metric : kAllMetrics) {
      expect_same_distances(queries.view(), base.view(), metric);
      expect_same_distances(base.view(), base.view(), metric);  // each row meets itself
    }
    expect_same_distances(queries.view(), base.view(), Metric::linf);
  });
}

// Enough pairs that some lie between two floats, and are computed one by one.
TEST_F(CudaDistance, ManyPairs) {
  for (const int64_t cols : {24, 300}) {
    const Vectors x = random_vectors(DType::f32, 500, cols, 8);
    const Vectors y = random_vectors(DType::f32, 3000, cols, 9, 3);
    for (const Metric metric : kAllMetrics) expect_same_distances(x.view(), y.view(), metric);
  }
}

// More tiles that are gone over again than there are blocks for it.
TEST_F(CudaDistance, ManyTilesOfVectorsThatNearlyAgree) {
  const auto rows = reference::make_floats(reference::Shape::near_duplicates, 70000, 20, 1);
  for (const Metric metric : {Metric::l2, Metric::cosine}) {
    expect_same_distances(rows.view().slice(0, 20), rows.view(), metric);
    expect_same_distances(rows.view().slice(0, 40), rows.view(), metric);
    expect_same_distances(rows.view().slice(0, 9), rows.view(), metric);
  }
}

TEST_F(CudaDistance, QuotientsOfFloatsAreThoseOfADivision) {
  for (const QuotientPairs pairs : {QuotientPairs::any_bits, QuotientPairs::neighbors, QuotientPairs::integers}) {
    double first[2] = {};
    EXPECT_EQ(wrong_float_quotients(pairs, 1 + static_cast<uint64_t>(pairs), int64_t{1} << 30, first), 0u)
        << first[0] << " / " << first[1];
  }
}

// Histograms of every magnitude: numbers below the normal ones, zeros, and the largest.
TEST_F(CudaDistance, ChiSquareOfEveryMagnitude) {
  for (const int64_t cols : {7, 40}) {
    reference::Matrix<float> x(90, cols);
    for (int64_t i = 0; i < 90 * cols; ++i) {
      x.values[static_cast<size_t>(i)] =
          i % 7 == 0 ? 0.0f
                     : std::ldexp(1.0f + static_cast<float>(i % 29) / 31.0f, static_cast<int>(i * 37 % 270) - 149);
    }
    expect_same_distances(x.view(), x.view(), Metric::chi_square);
  }
}

}  // namespace
}  // namespace kith
