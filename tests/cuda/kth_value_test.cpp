// The cut through rows on the GPU: k values do not exceed it, and hardly more, on any data and any length.
#include "cuda/device_data.hpp"
#include "cuda/parity.hpp"

#include <kith/error.hpp>

#include "kernels/matrix/knn_windows_cuda.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace kith {
namespace {

class CudaKthValueSmall : public OnCuda {};

std::vector<float> kth_on_gpu(const std::vector<float>& values, int64_t rows, int64_t k) {
  const DeviceBytes device(values.data(), values.size() * sizeof(float));
  const DeviceBytes found(static_cast<size_t>(rows) * sizeof(float));
  const int64_t cols = static_cast<int64_t>(values.size()) / rows;
  launch_kth_value({static_cast<const float*>(device.data()), rows, cols, k, static_cast<float*>(found.data())},
                   nullptr);
  KITH_CUDA_CHECK(cudaDeviceSynchronize());
  std::vector<float> kth(static_cast<size_t>(rows));
  found.read(kth.data());
  return kth;
}

// Random, sorted, few values, all equal, infinities and NaNs among others.
constexpr int64_t kKeyKinds = 5;
std::vector<float> hard_rows(int64_t cols, uint32_t seed) {
  std::mt19937 random(seed);
  const auto uniform = [&] { return static_cast<float>(std::ldexp(static_cast<double>(random()), -31) - 1.0); };
  std::vector<float> values;
  for (int64_t j = 0; j < cols; ++j) values.push_back(uniform());
  for (int64_t j = 0; j < cols; ++j) values.push_back(1e6f + static_cast<float>(j));
  for (int64_t j = 0; j < cols; ++j) values.push_back(static_cast<float>(random() % 7) - 3);
  values.insert(values.end(), static_cast<size_t>(cols), 2.5f);
  for (int64_t j = 0; j < cols; ++j) {
    const float special[] = {NAN, INFINITY, -INFINITY, -0.0f};
    values.push_back(random() % 3 == 0 ? special[random() % 4] : uniform());
  }
  return values;
}

TEST_F(CudaKthValueSmall, EveryLengthAndKind) {
  for (const int64_t cols : {1, 5, 255, 2048, 2049, 8192, 8200, 16384, 16392, 31256, 32768}) {
    const std::vector<float> values = hard_rows(cols, static_cast<uint32_t>(cols));
    for (const int64_t k : {int64_t{1}, cols / 20 + 1, cols / 2 + 1, cols - 1, cols}) {
      if (k < 1) continue;
      const std::vector<float> kth = kth_on_gpu(values, kKeyKinds, k);
      for (int64_t row = 0; row < kKeyKinds; ++row) {
        SCOPED_TRACE(::testing::Message() << cols << " values, k " << k << ", kind " << row);
        const float cut = kth[static_cast<size_t>(row)];
        const auto* const first = values.data() + row * cols;
        const auto below = std::count_if(first, first + cols, [&](float value) { return value < cut; });
        const auto not_above = std::count_if(first, first + cols, [&](float value) { return value <= cut; });
        const auto numbers = std::count_if(first, first + cols, [](float value) { return !std::isnan(value); });
        if (numbers < k) {
          EXPECT_EQ(cut, INFINITY);
          continue;
        }
        EXPECT_GE(not_above, k);
        EXPECT_TRUE(below < k || not_above <= k + k / 64) << below << " " << not_above;
      }
    }
  }
}

TEST_F(CudaKthValueSmall, FewerValuesThanAskedForAndTooMany) {
  const std::vector<float> values(40, 1.0f);
  for (const float cut : kth_on_gpu(values, 4, 11)) EXPECT_EQ(cut, INFINITY);
  EXPECT_THROW(launch_kth_value({nullptr, 1, kKthLongestRow + 1, 1, nullptr}, nullptr), InvalidArgument);
}

}  // namespace
}  // namespace kith
