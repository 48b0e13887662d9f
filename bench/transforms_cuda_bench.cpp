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
#include "options.hpp"
#include "table.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>

namespace {

using namespace kith;

constexpr double kDoubleFlops = 30e12;

void run(const Options& options) {
  const int64_t rows = options.number("--rows", 10'000'000);
  const int64_t cols = options.number("--cols", 96);
  const Table table(options.text("--out"));
  const StreamTimer timer;
  ResourceOptions wish;
  wish.device = Device::cuda(0);
  wish.stream = timer.stream();
  const Resources resources(wish);
  const DeviceBytes given(Mixture(cols).points(rows, 7));
  const MatrixView x(given.as<float>(), DType::f32, {rows, cols, cols}, MemorySpace::cuda(0));
  const std::string half = std::to_string(cols / 2);
  table.line("transform           train s   apply ms   floor ms");
  for (const std::string& steps : {std::string("RR"), "PCA" + half, "OPQ" + std::to_string(cols / 6) + "_" + half,
                                   "OPQ" + std::to_string(cols / 4), std::string("Centre"), std::string("L2norm")}) {
    VectorTransform transform({steps});
    const auto begin = std::chrono::steady_clock::now();
    transform.train(x, resources);
    const double train = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const int64_t out = transform.dimension_out();
    const DeviceBytes made(static_cast<size_t>(rows * out) * 4);
    const MutableMatrixView y(made.as<float>(), DType::f32, {rows, out, out}, MemorySpace::cuda(0));
    const Times times =
        timer.of(std::max<int64_t>(1, options.number("--runs", 3)), [&] { transform.apply(x, y, resources); });
    const bool multiplies = steps != "Centre" && steps != "L2norm";
    const auto count = static_cast<double>(rows);
    const double products =
        multiplies ? product_ms(count, static_cast<double>(out), static_cast<double>(cols), kDoubleFlops) : 0;
    const double floor = std::max(read_ms(4 * count * static_cast<double>(cols + out)), products);
    std::string name = steps;
    name.resize(18, ' ');
    table.line(name + column(train, 9, 2) + column(times.median, 11, 2) + column(floor, 11, 2));
  }
}

int program(int argc, char** argv) {
  try {
    const Options options(argc, argv, {"--rows", "--cols", "--runs", "--out"});
    if (cuda_devices().empty()) {
      std::fprintf(stderr, "transforms_cuda_bench: no CUDA device here, or a build without CUDA\n");
      return 1;
    }
    run(options);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "transforms_cuda_bench: %s\n", error.what());
    return 1;
  }
}

const kith::bench::Registered known(
    {.name = "transforms_cuda", .about = "transforms on a GPU", .program = &program});

}  // namespace
