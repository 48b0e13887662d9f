// How fast k-means is on a GPU: a mixture with the distribution of mixture.hpp's, but other numbers, since it is made
// on the device; beside the floor of the hardware and what other libraries take.
//
//   kmeans_cuda_bench [--only NAME] [--runs N] [--iterations N] [--clusters N] [--device-memory-limit BYTES]
//                     [--device cuda|cpu] [--out FILE]
//
// Cases: data on the device, from random rows or by k-means++ ("++", beside "one" iteration without it); data on the
// host that do not fit a device memory limit ("limit"). Times are those of whole fits, the check for NaN included and
// the labels' pass not, the best of the runs: of CUDA events, or of a clock where the data are on the host. The floor
// is the matrix product at the rate that such a product reaches on an H200 (8192 x 8192 x 8192), one read of the rows
// in each iteration, or where they come from the host one copy in each at the rate measured here, whichever takes
// longest. On the CPU, which is there to compare with, the data are copied to the host first.
#include <kith/kith.hpp>

#include "cuda_timing.hpp"
#include "driver/benchmark.hpp"
#include "floor.hpp"
#include "peers.hpp"

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
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
  KMeansInit init = KMeansInit::random;
  int64_t device_limit = kNoLimit;  // where there is one the data are on the host
};

constexpr Case kCases[] = {
    {"1M x 128 f32 -> 4096", DType::f32, 1000000, 128, 4096, 20},
    {"1M x 128 u8 -> 4096", DType::u8, 1000000, 128, 4096, 20},
    {"8.1M x 784 f32 -> 256", DType::f32, 8100000, 784, 256, 20},
    {"8.1M x 784 f32 -> 4096", DType::f32, 8100000, 784, 4096, 20},
    {"8.1M x 784 u8 -> 256", DType::u8, 8100000, 784, 256, 20},
    {"8.1M x 784 u8 -> 4096", DType::u8, 8100000, 784, 4096, 20},
    {"1M x 128 f32 -> 1024 ++", DType::f32, 1000000, 128, 1024, 1, KMeansInit::kmeans_plus_plus},
    {"1M x 128 f32 -> 4096 ++", DType::f32, 1000000, 128, 4096, 1, KMeansInit::kmeans_plus_plus},
    {"1M x 128 f32 -> 1024 one", DType::f32, 1000000, 128, 1024, 1},
    {"1M x 128 f32 -> 4096 one", DType::f32, 1000000, 128, 4096, 1},
    {"16M x 128 u8 limit -> 4096", DType::u8, 16000000, 128, 4096, 10, KMeansInit::random, int64_t{1} << 30},
    {"8M x 128 f32 limit -> 4096", DType::f32, 8000000, 128, 4096, 10, KMeansInit::random, int64_t{2} << 30},
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
  DeviceBytes array_;
  MatrixView view_;
};

// A copy on the host, in ordinary memory.
std::vector<std::byte> on_host(const MatrixView& rows) {
  std::vector<std::byte> bytes(static_cast<size_t>(rows.rows() * rows.cols() * size_of(rows.dtype())));
  check(cudaMemcpy(bytes.data(), rows.data(), bytes.size(), cudaMemcpyDeviceToHost));
  return bytes;
}

// The rate of copies from pinned memory to the device.
double copy_bytes_per_second() {
  constexpr size_t kBytes = size_t{1} << 30;
  const StreamTimer timer;
  const DeviceBytes target(kBytes);
  void* from = nullptr;
  check(cudaMallocHost(&from, kBytes));
  const Times times = timer.of(
      3, [&] { check(cudaMemcpyAsync(target.as<void>(), from, kBytes, cudaMemcpyHostToDevice, timer.stream())); });
  check(cudaFreeHost(from));
  return static_cast<double>(kBytes) * 1e3 / times.best;
}

template <typename Call>
double best_by_clock(int64_t runs, const Call& call) {
  call();
  double best = 0;
  for (int64_t i = 0; i < runs; ++i) {
    const auto start = std::chrono::steady_clock::now();
    call();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    best = i == 0 ? took.count() : std::min(best, took.count());
  }
  return best;
}

double floor_milliseconds(const Case& one, double copy_rate) {
  const double values = static_cast<double>(one.rows) * static_cast<double>(one.cols);
  const double product = 2 * values * static_cast<double>(one.clusters) / kHalfFlops;
  const double bytes = values * static_cast<double>(size_of(one.dtype));
  const double read = bytes / (copy_rate > 0 ? copy_rate : kReadBytes);
  return 1e3 * std::max(product, read) * static_cast<double>(one.iterations);
}

void run(const bench::Options& given, bench::Report& report) {
  const std::string only = given.text("--only");
  const int64_t runs = std::max<int64_t>(1, given.number("--runs", 1));
  const bool by_cpu = given.text("--device", "cuda") == "cpu";
  const StreamTimer timer;
  const Peers peers("kmeans");
  std::string log;
  report.note(cuda_devices().front().name + "; times are those of all iterations" +
              (by_cpu ? ", on the CPU of its host" : ""));
  for (Case one : kCases) {
    if (!only.empty() && std::string(one.name).find(only) == std::string::npos) continue;
    const bool streamed = one.device_limit != kNoLimit;
    const int64_t usual_iterations = one.iterations;
    one.iterations = given.number("--iterations", one.iterations);
    one.clusters = given.number("--clusters", one.clusters);
    one.device_limit = given.number("--device-memory-limit", one.device_limit);
    const int64_t bytes = one.rows * one.cols * (size_of(one.dtype) + 2);  // with the operands that stay
    if (bytes > cuda_devices().front().memory_free / 10 * 8) {
      report.note(std::string(one.name) + " does not fit here");
      continue;
    }
    auto rows = std::make_unique<Rows>(one.dtype, one.rows, one.cols);
    MatrixView view = rows->view();
    std::vector<std::byte> host;
    if (streamed || by_cpu) {
      host = on_host(view);
      rows.reset();
      view = MatrixView(host.data(), one.dtype, {one.rows, one.cols, one.cols});
    }
    const double copy_rate = streamed ? copy_bytes_per_second() : 0;
    ResourceOptions options;
    options.device = by_cpu ? Device::cpu() : Device::cuda(0);
    if (!by_cpu) options.stream = timer.stream();
    if (!by_cpu) options.device_memory_limit = one.device_limit;
    options.log = [&](LogLevel, std::string_view text) { log = text; };
    const Resources resources(options);
    KMeansParams params;
    params.clusters = one.clusters;
    params.iterations = one.iterations;
    params.tol = 0;
    params.init = one.init;
    params.compute_labels = false;
    KMeans model(params);
    const auto fit = [&] { model.fit(view, {}, resources); };
    const double best = host.empty() ? timer.of(runs, fit).best : best_by_clock(runs, fit);
    const double floor = floor_milliseconds(one, copy_rate);
    const PeerTimes others = one.iterations == usual_iterations ? peers.of(one.name) : PeerTimes();
    const auto iterations = static_cast<double>(model.iterations());
    bench::Row row{
        .name = one.name,
        .shape = std::to_string(one.rows) + " x " + std::to_string(one.cols) + " to " + std::to_string(one.clusters),
        .ms = best,
        .runs = runs,
        .clock = host.empty() ? "cuda" : "wall",
        .floor_ms = floor,
        .figures = {{"iterations", iterations}, {"each_ms", best / iterations}, {"objective", model.objective()}}};
    others.add_to(row);
    if (streamed) row.figures.emplace_back("copy_gb_per_second", copy_rate / 1e9);
    if (!log.empty()) row.labels.emplace_back("log", log);
    report.row(row);
    log.clear();
  }
}

const kith::bench::Registered known(
    {.name = "kmeans_cuda",
     .about = "k-means on a GPU, beside the floor and other libraries",
     .options = {"--only", "--runs", "--iterations", "--clusters", "--device-memory-limit", "--device"},
     .needs_gpu = true,
     .run = &run});

}  // namespace
