// How fast k-means is on a GPU, with the data in its memory: a mixture with the distribution of mixture.hpp's, but
// other numbers, since it is made on the device; from random rows, beside the floor of the hardware and what other
// libraries take.
//
//   kmeans_cuda_bench [--only NAME] [--runs N] [--iterations N] [--out FILE]
//
// Times are CUDA events around whole fits, the check for NaN included and the labels' pass not, the best of the runs.
// The floor is the matrix product at the rate that such a product reaches on an H200 (8192 x 8192 x 8192) or one read
// of the rows in each iteration, whichever takes longer.
#include <kith/kith.hpp>

#include "cuda_timing.hpp"
#include "floor.hpp"
#include "options.hpp"
#include "peers.hpp"
#include "table.hpp"

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

namespace {

using namespace kith;

__device__ uint64_t mixed(uint64_t seed, uint64_t index) {
  uint64_t z = seed * 0x9E3779B97F4A7C15u + index * 0xD1B54A32D192ED03u + 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}
__device__ float gaussian(uint64_t seed, uint64_t index) {
  const uint64_t bits = mixed(seed, index);
  const float u = (static_cast<float>(bits >> 40) + 0.5f) * 0x1p-24f;
  const float v = static_cast<float>(bits & 0xFFFFFF) * 0x1p-24f;
  return sqrtf(-2 * logf(u)) * cosf(6.2831853f * v);
}

__device__ void store(float* to, float value) { *to = value; }
__device__ void store(__half* to, float value) { *to = __float2half_rn(value); }
__device__ void store(uint8_t* to, float value) {
  *to = static_cast<uint8_t>(fminf(fmaxf(rintf(value), 0.0f), 255.0f));
}

// A block for each row: one of 2,000 centres of 40 |N(0,1)|, plus 3 N(0,1), plus z B with z ~ N(0,1)^16, B 6 N(0,1).
template <typename T>
__global__ void mixture_kernel(T* rows, int64_t cols) {
  const auto row = static_cast<uint64_t>(blockIdx.x);
  const uint64_t centre = mixed(1, row) % 2000;
  float z[16];
  for (int f = 0; f < 16; ++f) z[f] = gaussian(2, row * 16 + static_cast<uint64_t>(f));
  for (int64_t c = threadIdx.x; c < cols; c += blockDim.x) {
    const auto col = static_cast<uint64_t>(c);
    float value = 40 * fabsf(gaussian(3, centre * 4096 + col)) + 3 * gaussian(4, row * 4096 + col);
    for (int f = 0; f < 16; ++f) value += z[f] * 6 * gaussian(5, static_cast<uint64_t>(f) * 4096 + col);
    store(rows + row * static_cast<uint64_t>(cols) + col, value);
  }
}

struct Case {
  const char* name;
  DType dtype;
  int64_t rows;
  int64_t cols;
  int64_t clusters;
  int64_t iterations;
};

constexpr Case kCases[] = {
    {"1M x 128 f32 -> 4096", DType::f32, 1000000, 128, 4096, 20},
    {"1M x 128 u8 -> 4096", DType::u8, 1000000, 128, 4096, 20},
    {"8.1M x 784 f32 -> 256", DType::f32, 8100000, 784, 256, 20},
    {"8.1M x 784 f32 -> 4096", DType::f32, 8100000, 784, 4096, 20},
    {"8.1M x 784 u8 -> 256", DType::u8, 8100000, 784, 256, 20},
    {"8.1M x 784 u8 -> 4096", DType::u8, 8100000, 784, 4096, 20},
    {"100M x 128 f16 -> 85000", DType::f16, 100000000, 128, 85000, 1},
};

class Rows {
 public:
  Rows(DType dtype, int64_t rows, int64_t cols)
      : array_(static_cast<size_t>(rows * cols * size_of(dtype))),
        view_(array_.as<void>(), dtype, {rows, cols, cols}, MemorySpace::cuda(0)) {
    const auto blocks = static_cast<unsigned>(rows);
    if (dtype == DType::f32) mixture_kernel<<<blocks, 128>>>(array_.as<float>(), cols);
    if (dtype == DType::f16) mixture_kernel<<<blocks, 128>>>(array_.as<__half>(), cols);
    if (dtype == DType::u8) mixture_kernel<<<blocks, 128>>>(array_.as<uint8_t>(), cols);
    check(cudaGetLastError());
    check(cudaDeviceSynchronize());
  }
  const MatrixView& view() const { return view_; }

 private:
  DeviceArray array_;
  MatrixView view_;
};

void run(const std::string& only, int64_t runs, int64_t iterations, const Table& table) {
  const StreamTimer timer;
  const Peers peers("kmeans");
  std::string log;
  ResourceOptions options;
  options.device = Device::cuda(0);
  options.stream = timer.stream();
  options.log = [&](LogLevel, std::string_view text) { log = text; };
  const Resources resources(options);
  table.line(cuda_devices().front().name + ": k-means from random rows on the device; milliseconds for all iterations");
  table.line(
      "what                      iterations      best  each one     floor   ratio     FAISS      cuVS      goal   "
      "objective");
  for (const Case& one : kCases) {
    if (!only.empty() && std::string(one.name).find(only) == std::string::npos) continue;
    const int64_t bytes = one.rows * one.cols * (size_of(one.dtype) + 2);  // with the operands that stay
    if (bytes > cuda_devices().front().memory_free / 10 * 8) {
      table.line(std::string(one.name) + " does not fit here");
      continue;
    }
    const Rows rows(one.dtype, one.rows, one.cols);
    KMeansParams params;
    params.clusters = one.clusters;
    params.iterations = iterations > 0 ? iterations : one.iterations;
    params.tol = 0;
    params.init = KMeansInit::random;
    params.compute_labels = false;
    KMeans model(params);
    const double best = timer.of(runs, [&] { model.fit(rows.view(), {}, resources); }).best;
    const double values = static_cast<double>(one.rows) * static_cast<double>(one.cols);
    const double product = 2e3 * values * static_cast<double>(one.clusters) / kHalfFlops;
    const double read = 1e3 * values * static_cast<double>(size_of(one.dtype)) / kReadBytes;
    const double floor = std::max(product, read) * static_cast<double>(params.iterations);
    const PeerTimes others = params.iterations == one.iterations ? peers.of(one.name) : PeerTimes();
    char text[240];
    std::snprintf(text, sizeof text, "%-26s %9lld %9.2f %9.3f %9.2f %6.1fx %9.0f %9.0f %9.0f   %.8g  %s", one.name,
                  static_cast<long long>(model.iterations()), best, best / static_cast<double>(model.iterations()),
                  floor, best / floor, others.faiss, others.cuvs, others.goal, model.objective(), log.c_str());
    table.line(text);
    log.clear();
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Options options(argc, argv, {"--only", "--runs", "--iterations", "--out"});
    if (cuda_devices().empty()) {
      std::fprintf(stderr, "kmeans_cuda_bench: no CUDA device here, or a build without CUDA\n");
      return 1;
    }
    const Table table(options.text("--out"));
    run(options.text("--only"), std::max<int64_t>(1, options.number("--runs", 1)), options.number("--iterations", 0),
        table);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kmeans_cuda_bench: %s\n", error.what());
    return 1;
  }
}
