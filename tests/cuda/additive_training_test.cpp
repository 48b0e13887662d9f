// Training of additive codes on a GPU: its linear algebra against the CPU's, and the whole of it.
#include "quantize/additive/additive_training.hpp"

#include <kith/error.hpp>
#include <kith/local_search_quantizer.hpp>

#include "cuda/device_buffer.hpp"
#include "cuda/device_data.hpp"
#include "cuda/device_guard.hpp"
#include "kernels/dense/cholesky_cuda.hpp"
#include "kernels/dense/factorisations.hpp"
#include "quantize/additive/local_search_steps_cuda.hpp"
#include "reference/data.hpp"
#include "rows/row_source.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Matrix;
using reference::Shape;

class CudaAdditiveTrainingSmall : public OnCuda {};
class CudaAdditiveTraining : public OnCuda {};

TEST_F(CudaAdditiveTrainingSmall, SystemsOfAnySize) {
  for (const int64_t size : {1, 5, 63, 64, 65, 128, 200}) {
    for (const int64_t sides : {1, 3, 70}) {
      SCOPED_TRACE(::testing::Message() << size << " x " << size << ", " << sides << " sides");
      const auto factors = make_floats(Shape::gaussian, size, size, 3);
      const auto answers = make_floats(Shape::gaussian, sides, size, 4);
      // A = F F^T + I, and right sides for known answers.
      std::vector<double> system(static_cast<size_t>((size + sides) * size));
      const auto at = [&](int64_t r, int64_t c) -> double& { return system[static_cast<size_t>(r * size + c)]; };
      for (int64_t r = 0; r < size; ++r) {
        for (int64_t c = 0; c < size; ++c) {
          at(r, c) = r == c ? 1 : 0;
          for (int64_t k = 0; k < size; ++k) {
            at(r, c) += static_cast<double>(factors.row(r)[k]) * static_cast<double>(factors.row(c)[k]);
          }
        }
      }
      for (int64_t s = 0; s < sides; ++s) {
        for (int64_t r = 0; r < size; ++r) {
          double sum = 0;
          for (int64_t c = 0; c < size; ++c) sum += at(r, c) * static_cast<double>(answers.row(s)[c]);
          at(size + s, r) = sum;
        }
      }
      const DeviceBytes there(system.data(), system.size() * 8);
      launch_solve_positive_definite({static_cast<double*>(there.data()), size, sides}, 1.0, nullptr);
      KITH_CUDA_CHECK(cudaDeviceSynchronize());
      there.read(system.data());
      for (int64_t s = 0; s < sides; ++s) {
        for (int64_t c = 0; c < size; ++c) {
          ASSERT_NEAR(at(size + s, c), static_cast<double>(answers.row(s)[c]), 1e-8) << s << ", " << c;
        }
      }
    }
  }
}

TEST_F(CudaAdditiveTrainingSmall, CodebooksAsOnTheCpu) {
  for (const int bits : {3, 8}) {
    constexpr int64_t kRows = 700;
    constexpr int64_t kCols = 33;
    constexpr int64_t kBooks = 3;
    const auto rows = make_floats(Shape::far_mean, kRows, kCols, 5);
    std::vector<uint8_t> codes;
    const CounterRng rng(1, 2);
    // One codeword of a book is never used.
    for (int64_t i = 0; i < kRows * kBooks; ++i) {
      codes.push_back(static_cast<uint8_t>(rng.below(static_cast<uint64_t>(i), (1u << bits) - 1)));
    }
    CodedRows coded{rows.row(0), codes.data(), kRows, kCols, kBooks, bits};
    std::vector<float> expected(static_cast<size_t>((kBooks << bits) * kCols));
    update_codebooks(coded, 1e-4, expected.data(), on_cpu());

    const DeviceBytes rows_there(rows.row(0), kRows * kCols * 4);
    const DeviceBytes codes_there(codes.data(), codes.size());
    coded.rows = static_cast<const float*>(rows_there.data());
    coded.codes = static_cast<const uint8_t*>(codes_there.data());
    const DeviceBytes system(static_cast<size_t>(codebook_system_values(coded)) * sizeof(double));
    const DeviceBytes made(expected.size() * 4);
    const auto update = [&] {
      launch_update_codebooks(coded, 1e-4, static_cast<double*>(system.data()), static_cast<float*>(made.data()),
                              nullptr);
      std::vector<float> found(expected.size());
      made.read(found.data());
      return found;
    };
    const std::vector<float> found = update();
    EXPECT_EQ(found, update());
    double largest = 0;
    for (const float value : expected) largest = std::max(largest, std::fabs(static_cast<double>(value)));
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_NEAR(static_cast<double>(found[i]), static_cast<double>(expected[i]), 1e-5 * largest) << i;
    }
  }
}

LocalSearchParams small_params(AdditiveStart start) {
  LocalSearchParams params;
  params.codebooks = 3;
  params.bits = 5;
  params.rounds = 4;
  params.train_search_rounds = 2;
  params.train_start = start;
  params.seed = 3;
  return params;
}

TEST_F(CudaAdditiveTrainingSmall, TheSameBytesEachTimeAndNoWorseThanOnTheCpu) {
  const auto rows = make_floats(Shape::gaussian, 1500, 20, 6);
  const DeviceMatrix there(rows.view());
  for (const AdditiveStart start : {AdditiveStart::opq, AdditiveStart::residual, AdditiveStart::random}) {
    SCOPED_TRACE(static_cast<int>(start));
    LocalSearchParams params = small_params(start);
    params.anneal = 0;
    LocalSearchQuantizer cpu(params);
    cpu.train(rows.view(), on_cpu());
    LocalSearchQuantizer gpu(params);
    gpu.train(rows.view(), on_cuda());
    EXPECT_NEAR(gpu.history().back(), cpu.history().back(), 0.02 * cpu.history().back());
    for (size_t i = 1; i < gpu.history().size(); ++i) {
      EXPECT_LT(gpu.history()[i], gpu.history()[i - 1] * (1 + 1e-6));
    }
    LocalSearchQuantizer again(params);
    again.train(there.view(), on_cuda());
    EXPECT_EQ(again.values(), gpu.values());
    EXPECT_EQ(again.history(), gpu.history());
  }
}

TEST_F(CudaAdditiveTraining, CancelKeepsTheLastRound) {
  const auto rows = make_floats(Shape::gaussian, 1500, 20, 6);
  ResourceOptions options = cuda_options();
  int rounds = 0;
  options.log = [&, cancel = options.cancel](LogLevel, std::string_view text) {
    if (text.find("LSQ round") != std::string_view::npos && ++rounds == 3) cancel.request();
  };
  LocalSearchParams params = small_params(AdditiveStart::residual);
  params.rounds = 1000;
  LocalSearchQuantizer quantizer(params);
  EXPECT_THROW(quantizer.train(rows.view(), Resources(options)), Cancelled);
  ASSERT_TRUE(quantizer.trained());
  EXPECT_EQ(quantizer.history().size(), 3u);
}

}  // namespace
}  // namespace kith
