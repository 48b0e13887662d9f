// How fast quantizers are on a GPU: training, encoding and decoding of rows that lie on the device, beside the floor of
// the hardware.
//
//   quantize_cuda_bench [--rows N] [--cols N] [--runs N] [--out FILE]
//
// Training is on all rows, of which product codes sample 65,536 for each 256 codewords. The floor of encoding is one
// read of the rows and one write of the codes, or for product codes as many multiplications as there are codewords for
// each value at the rate of f32, whichever takes longer; of decoding, the read and the write. Times are those of whole
// calls, the best of the runs.
#include <kith/kith.hpp>

#include "driver/benchmark.hpp"

#include "cuda/error.hpp"
#include "quantize/codec.hpp"
#include "rows/row_source.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace kith;

constexpr double kBytesPerSecond = 4.8e12;  // H200
constexpr double kFmaPerSecond = 30e12;

struct Case {
  const char* name;
  CodeRecipe spec;
};

template <typename Work>
double best_seconds(int runs, const Work& work) {
  double best = 1e30;
  for (int run = 0; run <= runs; ++run) {
    KITH_CUDA_CHECK(cudaDeviceSynchronize());
    const auto begin = std::chrono::steady_clock::now();
    work();
    const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (run > 0) best = std::min(best, took);  // the first wakes the device
  }
  return best;
}

void* allocated(int64_t bytes) {
  void* memory = nullptr;
  KITH_CUDA_CHECK(cudaMalloc(&memory, static_cast<size_t>(bytes)));
  return memory;
}

void run(const bench::Options& options, bench::Report& report) {
  const int64_t rows = options.number("--rows", 10'000'000);
  const int64_t cols = options.number("--cols", 128);
  const int runs = static_cast<int>(options.number("--runs", 3));
  ResourceOptions on_gpu;
  on_gpu.device = Device::cuda(0);
  const Resources resources(on_gpu);

  // 100,000 rows of a mixture, again and again: what is compared is not what is learnt.
  const int64_t block = std::min<int64_t>(rows, 100'000);
  std::vector<float> host(static_cast<size_t>(block * cols));
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> centres(static_cast<size_t>(1000 * cols));
  for (float& value : centres) value = normal(random);
  for (int64_t i = 0; i < block; ++i) {
    const auto centre = static_cast<int64_t>(random() % 1000);
    for (int64_t c = 0; c < cols; ++c) {
      host[static_cast<size_t>(i * cols + c)] = centres[static_cast<size_t>(centre * cols + c)] + 0.5f * normal(random);
    }
  }
  auto* const data = static_cast<float*>(allocated(rows * cols * 4));
  void* const codes = allocated(rows * cols * 2);
  void* const back = allocated(rows * cols * 4);
  for (int64_t first = 0; first < rows; first += block) {
    const int64_t count = std::min(block, rows - first);
    KITH_CUDA_CHECK(
        cudaMemcpy(data + first * cols, host.data(), static_cast<size_t>(count * cols) * 4, cudaMemcpyHostToDevice));
  }
  const MatrixView view(data, DType::f32, {rows, cols, cols}, MemorySpace::cuda(0));
  const MutableMatrixView out(back, DType::f32, {rows, cols, cols}, MemorySpace::cuda(0));

  const Case cases[] = {
      {"PQ8", {kProductCode, DType::f32, 8, 8}},     {"PQ16", {kProductCode, DType::f32, 8, 16}},
      {"PQ32", {kProductCode, DType::f32, 8, 32}},   {"PQ64", {kProductCode, DType::f32, 8, 64}},
      {"PQ32x4", {kProductCode, DType::f32, 4, 32}}, {"SQ8", {kScalarCode, DType::f32, 8, 0}},
      {"SQ4", {kScalarCode, DType::f32, 4, 0}},      {"f16", {kStoredCode, DType::f16, 8, 0}}};
  report.note(cuda_devices().front().name);
  const std::string shape = std::to_string(rows) + " x " + std::to_string(cols) + " f32";
  for (const Case& one : cases) {
    if (one.spec.parts > 0 && cols % one.spec.parts != 0) continue;
    std::shared_ptr<const Codec> codec;
    const double train = best_seconds(runs, [&] { codec = Codec::train(one.spec, view, 1, resources); });
    const int64_t bytes = codec->format().bytes();
    const MutableMatrixView made(codes, DType::u8, {rows, bytes, bytes}, MemorySpace::cuda(0));
    const double encode = best_seconds(runs, [&] { codec->encode(view, made, resources); });
    const double decode = best_seconds(runs, [&] { codec->decode(made, out, resources); });
    const double moved = static_cast<double>(rows * (4 * cols + bytes)) / kBytesPerSecond;
    const double words = one.spec.code == kProductCode ? static_cast<double>(codec->format().codewords()) : 0;
    const double floor = std::max(moved, static_cast<double>(rows * cols) * words / kFmaPerSecond);
    const auto row = [&](const char* stage, double seconds, std::optional<double> least) {
      bench::Row made_row{.name = std::string(one.name) + ", " + stage,
                          .shape = shape,
                          .ms = 1e3 * seconds,
                          .runs = runs,
                          .clock = "wall"};
      if (least) made_row.floor_ms = 1e3 * *least;
      report.row(made_row);
    };
    row("train", train, {});
    row("encode", encode, floor);
    row("decode", decode, moved);
  }
}

const kith::bench::Registered known(
    {.name = "quantize_cuda",
     .about = "training, encoding and decoding of quantizers on a GPU",
     .options = {"--rows", "--cols", "--runs"},
     .needs_gpu = true,
     .run = &run});

}  // namespace
