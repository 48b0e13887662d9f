// How long transforms take on a GPU's rows, beside the read and write of these rows, and how long they are trained.
//
//   transforms_cuda_bench [--rows N] [--cols N] [--runs N] [--out FILE]
//
// Applying: rows of the mixture of mixture.hpp and results in device memory, medians of whole calls by CUDA events. The
// floor is the larger of reading and writing the rows, and of the float64 products at 30 TFLOP/s, half of what an
// H200's matrix units are said to do in float64: the order of the sums is fixed. Training is from device memory,
// once.
#include <kith/kith.hpp>

#include "cuda_timing.hpp"
#include "driver/benchmark.hpp"
#include "floor.hpp"
#include "mixture.hpp"

#include <algorithm>
#include <chrono>
#include <string>

namespace {

using namespace kith;

constexpr double kDoubleFlops = 30e12;

void run(const bench::Options& options, bench::Report& report) {
  const int64_t rows = options.number("--rows", 10'000'000);
  const int64_t cols = options.number("--cols", 96);
  const StreamTimer timer;
  ResourceOptions on_gpu;
  on_gpu.device = Device::cuda(0);
  on_gpu.stream = timer.stream();
  const Resources resources(on_gpu);
  const DeviceBytes given(Mixture(cols).points(rows, 7));
  const MatrixView x(given.as<float>(), DType::f32, {rows, cols, cols}, MemorySpace::cuda(0));
  const std::string half = std::to_string(cols / 2);
  report.note(cuda_devices().front().name);
  for (const std::string& steps : {std::string("RR"), "PCA" + half, "OPQ" + std::to_string(cols / 6) + "_" + half,
                                   "OPQ" + std::to_string(cols / 4), std::string("Centre"), std::string("L2norm")}) {
    VectorTransform transform({steps});
    const auto begin = std::chrono::steady_clock::now();
    transform.train(x, resources);
    const double train = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const int64_t out = transform.dimension_out();
    const DeviceBytes made(static_cast<size_t>(rows * out) * 4);
    const MutableMatrixView y(made.as<float>(), DType::f32, {rows, out, out}, MemorySpace::cuda(0));
    const int64_t runs = std::max<int64_t>(1, options.number("--runs", 3));
    const Times times = timer.of(runs, [&] { transform.apply(x, y, resources); });
    const bool multiplies = steps != "Centre" && steps != "L2norm";
    const auto count = static_cast<double>(rows);
    const double products =
        multiplies ? product_ms(count, static_cast<double>(out), static_cast<double>(cols), kDoubleFlops) : 0;
    const double floor = std::max(read_ms(4 * count * static_cast<double>(cols + out)), products);
    report.row({.name = steps,
                .shape = std::to_string(rows) + " x " + std::to_string(cols) + " f32",
                .median_ms = times.median,
                .runs = runs,
                .clock = "cuda",
                .floor_ms = floor,
                .figures = {{"train_s", train}}});
  }
}

const kith::bench::Registered known(
    {.name = "transforms_cuda",
     .about = "transforms on a GPU",
     .options = {"--rows", "--cols", "--runs"},
     .needs_gpu = true,
     .run = &run});

}  // namespace
