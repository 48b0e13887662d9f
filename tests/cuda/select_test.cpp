// Selection over rows on the GPU against a sort on the CPU, bit for bit: every path, both orders, odd shapes, hard
// data.
#include "cuda/parity.hpp"

#include "core/ordered_key.hpp"
#include "cuda/error.hpp"
#include "kernels/select/filter_sample.hpp"
#include "kernels/select/select_rows_cuda.hpp"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <vector>

namespace kith {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

template <typename T>
class OnDevice {
 public:
  explicit OnDevice(size_t count) : count_(count) {
    KITH_CUDA_CHECK(cudaMalloc(&data_, std::max<size_t>(1, count * sizeof(T))));
    KITH_CUDA_CHECK(cudaMemset(data_, 0xCD, count * sizeof(T)));
  }
  explicit OnDevice(const std::vector<T>& values) : OnDevice(values.size()) {
    KITH_CUDA_CHECK(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~OnDevice() { (void)cudaFree(data_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  T* get() const { return static_cast<T*>(data_); }
  std::vector<T> copy() const {
    std::vector<T> values(count_);
    KITH_CUDA_CHECK(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  void* data_ = nullptr;
  size_t count_;
};

struct Matrix {
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;
  std::vector<float> values;
  std::vector<int32_t> lengths;  // empty: all are cols
  std::vector<int64_t> ids;      // empty: columns

  float* row(int64_t i) { return values.data() + i * stride; }
  const float* row(int64_t i) const { return values.data() + i * stride; }
  int64_t length(int64_t i) const { return lengths.empty() ? cols : lengths[static_cast<size_t>(i)]; }
};

struct Selected {
  std::vector<float> values;
  std::vector<int64_t> ids;
};

Matrix make_matrix(int64_t rows, int64_t cols, int64_t stride) {
  return {rows, cols, stride, std::vector<float>(static_cast<size_t>(std::max<int64_t>(1, rows * stride)), -7e30f),
          {},   {}};
}

// Row i is of kind i: random, sorted, reversed, all equal, few values, NaN and infinities, all NaN, large mean.
constexpr int64_t kSelectKinds = 8;
Matrix hard_matrix(int64_t cols, int64_t stride, unsigned seed) {
  Matrix matrix = make_matrix(kSelectKinds, cols, stride);
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  const float special[] = {kNan, kInfinity, -kInfinity, 0.0f, -0.0f, 1.0f, -kNan, 1e-45f};
  for (int64_t j = 0; j < cols; ++j) {
    for (int64_t i = 0; i < 3; ++i) matrix.row(i)[j] = uniform(random);
    matrix.row(3)[j] = 2.5f;
    matrix.row(4)[j] = static_cast<float>(random() % 3);
    matrix.row(5)[j] = special[random() % 8];
    matrix.row(6)[j] = kNan;
    matrix.row(7)[j] = 1e6f + uniform(random);
  }
  std::sort(matrix.row(1), matrix.row(1) + cols);
  std::sort(matrix.row(2), matrix.row(2) + cols, std::greater<>());
  return matrix;
}

Selected select_on_cpu(const Matrix& matrix, int64_t k, SelectOrder order) {
  Selected result;
  const bool largest = order == SelectOrder::largest;
  for (int64_t i = 0; i < matrix.rows; ++i) {
    std::vector<std::tuple<uint32_t, int64_t, float>> all;
    for (int64_t j = 0; j < matrix.length(i); ++j) {
      const float value = matrix.row(i)[j];
      const int64_t id = matrix.ids.empty() ? j : matrix.ids[static_cast<size_t>(i * matrix.stride + j)];
      const float shown = std::isnan(value) ? kNan : value + 0.0f;
      all.emplace_back(ordered_key(largest ? -value : value), id, shown);
    }
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
      return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
    });
    for (size_t p = 0; p < static_cast<size_t>(k); ++p) {
      result.values.push_back(p < all.size() ? std::get<2>(all[p]) : largest ? -kInfinity : kInfinity);
      result.ids.push_back(p < all.size() ? std::get<1>(all[p]) : -1);
    }
  }
  return result;
}

Selected select_on_gpu(const Matrix& matrix, int64_t k, SelectOrder order, SelectPath path) {
  const OnDevice<float> values(matrix.values);
  const OnDevice<int32_t> lengths(matrix.lengths);
  const OnDevice<int64_t> ids(matrix.ids);
  const size_t places = static_cast<size_t>(matrix.rows * k);
  const OnDevice<float> out_values(places);
  const OnDevice<int32_t> out_columns(places);
  const OnDevice<int64_t> out_ids(places);
  const SelectInput input{values.get(),
                          matrix.rows,
                          matrix.cols,
                          matrix.stride,
                          matrix.lengths.empty() ? nullptr : lengths.get(),
                          matrix.ids.empty() ? nullptr : ids.get()};
  const SelectProblem problem = problem_of(input, k, order);
  const SelectPlan plan = plan_select(problem, cuda_devices().front().multiprocessors, path);
  const OnDevice<char> workspace(static_cast<size_t>(plan.workspace_bytes));
  launch_select_rows(input, {out_values.get(), out_columns.get(), out_ids.get()}, problem, plan, workspace.get(),
                     nullptr);
  KITH_CUDA_CHECK(cudaDeviceSynchronize());
  Selected result{out_values.copy(), out_ids.copy()};
  if (matrix.ids.empty()) {
    const std::vector<int32_t> columns = out_columns.copy();
    result.ids.assign(columns.begin(), columns.end());
  }
  return result;
}

void expect_same(const Matrix& matrix, int64_t k, SelectPath path = SelectPath::automatic) {
  for (const SelectOrder order : {SelectOrder::smallest, SelectOrder::largest}) {
    const Selected expected = select_on_cpu(matrix, k, order);
    const Selected found = select_on_gpu(matrix, k, order, path);
    for (size_t i = 0; i < expected.ids.size(); ++i) {
      ASSERT_EQ(expected.ids[i], found.ids[i])
          << "row " << i / static_cast<size_t>(k) << " place " << i % static_cast<size_t>(k) << ": "
          << expected.values[i] << " and " << found.values[i] << "; " << matrix.cols << " columns, k " << k << ", path "
          << static_cast<int>(path) << (order == SelectOrder::largest ? ", largest" : ", smallest");
    }
    ASSERT_EQ(std::memcmp(expected.values.data(), found.values.data(), expected.values.size() * sizeof(float)), 0)
        << "other values; " << matrix.cols << " columns, k " << k << ", path " << static_cast<int>(path);
  }
}

class CudaSelectRowsSmall : public OnCuda {};
class CudaSelectRows : public OnCuda {};

TEST_F(CudaSelectRowsSmall, RegistersAroundWholeWarps) {
  for (const int64_t cols : {1, 2, 31, 32, 33, 65, 255, 256, 257, 1000, 1024}) {
    const Matrix matrix = hard_matrix(cols, cols + cols % 3, 1);
    for (const int64_t k : {1, 5, 32, 33, 100}) expect_same(matrix, k, SelectPath::registers);
    expect_same(matrix, cols, SelectPath::registers);
  }
}

TEST_F(CudaSelectRowsSmall, WarpQueueAroundWholeWarps) {
  for (const int64_t cols : {1, 31, 32, 33, 500, 4097}) {
    const Matrix matrix = hard_matrix(cols, cols + 1, 2);
    for (const int64_t k : {1, 10, 32, 64, 100, 256}) expect_same(matrix, k, SelectPath::warp_queue);
  }
}

TEST_F(CudaSelectRowsSmall, FilterWithTheRowAsItsSample) {
  for (const int64_t cols : {1, 33, 257, 1025, 4095, 4096}) {
    const Matrix matrix = hard_matrix(cols, cols + 3, 3);
    for (const int64_t k : {1, 10, 100, 700}) expect_same(matrix, k, SelectPath::filter);
  }
}

TEST_F(CudaSelectRowsSmall, FilterWithASample) {
  const Matrix matrix = hard_matrix(9001, 9003, 4);
  for (const int64_t k : {1, 10, 100, 1000}) expect_same(matrix, k, SelectPath::filter);
}

TEST_F(CudaSelectRowsSmall, Radix) {
  for (const int64_t cols : {1, 100, 1500, 5000}) {
    const Matrix matrix = hard_matrix(cols, cols, 5);
    for (const int64_t k : {int64_t{1}, cols / 2 + 1, cols, cols + 7}) expect_same(matrix, k, SelectPath::radix);
  }
}

TEST_F(CudaSelectRowsSmall, LengthsOfTheirOwn) {
  for (const int64_t cols : {40, 900, 9000}) {
    Matrix matrix = hard_matrix(cols, cols, 6);
    matrix.lengths = {0, 1, 31, 32, 33, static_cast<int32_t>(cols), static_cast<int32_t>(cols - 1), 7};
    for (const int64_t k : {1, 10, 40}) {
      for (const SelectPath path :
           {SelectPath::automatic, SelectPath::filter, SelectPath::warp_queue, SelectPath::radix})
        expect_same(matrix, k, path);
    }
  }
}

TEST_F(CudaSelectRowsSmall, WidePayloads) {
  for (const int64_t cols : {1, 33, 1000, 5000}) {
    Matrix matrix = hard_matrix(cols, cols + 2, 7);
    for (size_t i = 0; i < matrix.values.size(); ++i)
      matrix.ids.push_back((int64_t{1} << 40) - static_cast<int64_t>(i) * 3);
    for (const int64_t k : {1, 32, 100, 300}) expect_same(matrix, k);
  }
}

TEST_F(CudaSelectRowsSmall, NoRows) {
  const Matrix matrix = make_matrix(0, 10, 10);
  expect_same(matrix, 5);
}

TEST_F(CudaSelectRows, EveryQueueLength) {
  const Matrix matrix = hard_matrix(20000, 20000, 8);
  for (const int64_t k : {32, 33, 64, 65, 128, 129, 256, 257, 512, 513, 1024, 1025, 2048}) {
    expect_same(matrix, k, SelectPath::warp_queue);
    expect_same(matrix, k, SelectPath::filter);
  }
  Matrix wide = hard_matrix(6000, 6000, 9);
  for (size_t i = 0; i < wide.values.size(); ++i) wide.ids.push_back(static_cast<int64_t>(i) << 20);
  for (const int64_t k : {64, 128, 512, 1024}) expect_same(wide, k);
}

TEST_F(CudaSelectRows, LongRows) {
  for (const int64_t cols : {16383, 16384, 70001, 128000}) {
    const Matrix matrix = hard_matrix(cols, cols + 1, 10);
    for (const int64_t k : {10, 100, 1000, 2048}) expect_same(matrix, k);
  }
}

TEST_F(CudaSelectRows, SlicedRows) {
  Matrix all = hard_matrix(1000003, 1000003, 11);
  for (const int64_t k : {1, 100, 1000, 2048}) expect_same(all, k);
  all.lengths = {0, 5, 1000003, 999999, 500, 40000, 1000000, 300000};
  expect_same(all, 100);
  Matrix one = hard_matrix(1 << 20, 1 << 20, 12);
  one.rows = 1;
  expect_same(one, 100);
}

TEST_F(CudaSelectRows, RowsOfMiddleLength) {
  for (const int64_t cols : {1100, 2048, 2049, 4000, 8000, 16001}) {
    const Matrix matrix = hard_matrix(cols, cols + 2, 16);
    for (const int64_t k : {1, 10, 100, 128, 129, 500}) expect_same(matrix, k, SelectPath::filter);
  }
  Matrix many = make_matrix(400, 3000, 3000);  // more rows than multiprocessors: not cut into slices
  std::mt19937 random(17);
  for (float& value : many.values) value = static_cast<float>(random() % 5000);
  for (const int64_t k : {1, 100, 1000}) expect_same(many, k);
}

TEST_F(CudaSelectRows, AnyK) {
  const Matrix matrix = hard_matrix(30000, 30000, 13);
  for (const int64_t k : {2049, 5000, 30000}) expect_same(matrix, k);
}

// Data made against the sample: what it sees is far smaller, or far larger, than the rest.
TEST_F(CudaSelectRows, SamplesThatMislead) {
  for (const int64_t k : {10, 100, 1000}) {
    const SelectPlan plan = plan_select({300, 40000, k}, cuda_devices().front().multiprocessors);
    ASSERT_EQ(plan.path, SelectPath::filter);
    ASSERT_EQ(plan.slices, 1);
    const int sample = plan.threads * kFilterItems;
    Matrix matrix = make_matrix(300, 40000, 40000);
    std::mt19937 random(14);
    for (float& value : matrix.values) value = static_cast<float>(random() % 100000);
    const uint32_t strata = static_cast<uint32_t>(sample) / kSampleRun;
    for (uint32_t i = 0; i < static_cast<uint32_t>(sample); ++i) {
      const uint32_t place = sample_start(i / kSampleRun, strata, 40000) + i % kSampleRun;
      matrix.row(0)[place] -= 1e6f;
      matrix.row(1)[place] += 1e6f;
      if (i % 64 == 0) matrix.row(2)[place] = kNan;
    }
    expect_same(matrix, k);
  }
}

TEST_F(CudaSelectRows, SameBytesEveryRun) {
  const Matrix matrix = hard_matrix(50000, 50000, 15);
  for (const int64_t k : {100, 2000}) {
    const Selected first = select_on_gpu(matrix, k, SelectOrder::smallest, SelectPath::automatic);
    for (int run = 0; run < 5; ++run) {
      const Selected again = select_on_gpu(matrix, k, SelectOrder::smallest, SelectPath::automatic);
      ASSERT_EQ(first.ids, again.ids);
      ASSERT_EQ(std::memcmp(first.values.data(), again.values.data(), first.values.size() * sizeof(float)), 0);
    }
  }
}

}  // namespace
}  // namespace kith
