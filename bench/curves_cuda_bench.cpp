// Exact search over k on a GPU, fused and not: 10,000 queries in 1,000,000 x 128 vectors, as figure 4 of Johnson, Douze
// and Jégou, "Billion-scale similarity search with GPUs", has it for SIFT1M.
//
//   curves_cuda_bench [--rows N] [--queries N] [--cols N] [--runs N] [--out FILE]
//
// "fused" is kith::knn as anybody calls it: exact, ids and distances out, no matrix of distances in memory. "unfused"
// is what a library without fusion does: cuBLAS writes the f32 products of half-precision vectors to memory, a tile of
// queries at a time, and the best selection over rows reads them again. It leaves out norms and re-ranking, which an
// exact search would need too, so it is a lower bound. The floors: the product at the rate that cuBLAS reaches for 8192
// cubed, and one read of all products at 4.2 TB/s, which is the fastest that any selection from memory can be.
#include <kith/kith.hpp>

#include "cuda_timing.hpp"
#include "driver/benchmark.hpp"
#include "floor.hpp"
#include "mixture.hpp"

#include "kernels/select/select_rows_cuda.hpp"

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>
#ifdef KITH_HAS_CUBLAS
#include <cublas_v2.h>
#endif

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace kith;

constexpr int64_t kTileBytes = int64_t{5} << 30;

struct Settings {
  int64_t rows = 1000000;
  int64_t queries = 10000;
  int64_t cols = 128;
  int64_t runs = 5;
};

Settings parse(const bench::Options& options) {
  Settings settings;
  settings.rows = options.number("--rows", settings.rows);
  settings.queries = options.number("--queries", settings.queries);
  settings.cols = options.number("--cols", settings.cols);
  settings.runs = std::max<int64_t>(1, options.number("--runs", settings.runs));
  return settings;
}

#ifdef KITH_HAS_CUBLAS
// Products to memory, then selection from memory.
class Unfused {
 public:
  Unfused(const std::vector<float>& base, const std::vector<float>& queries, const Settings& settings,
          cudaStream_t stream)
      : base_(halves(base)),
        queries_(halves(queries)),
        settings_(settings),
        tile_(std::clamp<int64_t>(kTileBytes / (4 * settings.rows), 1, settings.queries)),
        products_(static_cast<size_t>(4 * tile_ * settings.rows)),
        stream_(stream),
        multiprocessors_(cuda_devices().front().multiprocessors) {
    check(cublasCreate(&cublas_));
    check(cublasSetStream(cublas_, stream));
  }
  ~Unfused() { (void)cublasDestroy(cublas_); }
  Unfused(const Unfused&) = delete;
  Unfused& operator=(const Unfused&) = delete;

  double median_ms(int64_t k, const StreamTimer& timer) const {
    const auto results = static_cast<size_t>(settings_.queries * k);
    const DeviceBytes values(results * 4);
    const DeviceBytes columns(results * 4);
    const SelectProblem whole = problem_of(input_of(tile_), k, SelectOrder::largest);
    const DeviceBytes workspace(
        static_cast<size_t>(std::max<int64_t>(plan_select(whole, multiprocessors_).workspace_bytes, 1)));
    return timer
        .of(settings_.runs,
            [&] {
              for (int64_t first = 0; first < settings_.queries; first += tile_) {
                const int64_t count = std::min(tile_, settings_.queries - first);
                multiply(first, count);
                const SelectProblem problem = problem_of(input_of(count), k, SelectOrder::largest);
                launch_select_rows(input_of(count),
                                   {values.as<float>() + first * k, columns.as<int32_t>() + first * k, nullptr},
                                   problem, plan_select(problem, multiprocessors_), workspace.as<void>(), stream_);
              }
            })
        .median;
  }

 private:
  static void check(cublasStatus_t status) {
    if (status != CUBLAS_STATUS_SUCCESS) throw DeviceError(std::string("cuBLAS: ") + cublasGetStatusString(status));
  }
  static std::vector<__half> halves(const std::vector<float>& values) {
    std::vector<__half> rounded(values.size());
    std::transform(values.begin(), values.end(), rounded.begin(), [](float value) { return __float2half(value); });
    return rounded;
  }

  SelectInput input_of(int64_t count) const {
    return {products_.as<float>(), count, settings_.rows, settings_.rows, nullptr, nullptr};
  }

  // cuBLAS counts by columns: base (transposed) times queries, a column of products for each query.
  void multiply(int64_t first, int64_t count) const {
    const float one = 1;
    const float zero = 0;
    const int cols = static_cast<int>(settings_.cols);
    const int rows = static_cast<int>(settings_.rows);
    check(cublasGemmEx(cublas_, CUBLAS_OP_T, CUBLAS_OP_N, rows, static_cast<int>(count), cols, &one, base_.as<void>(),
                       CUDA_R_16F, cols, queries_.as<__half>() + first * settings_.cols, CUDA_R_16F, cols, &zero,
                       products_.as<void>(), CUDA_R_32F, rows, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  }

  DeviceBytes base_;
  DeviceBytes queries_;
  Settings settings_;
  int64_t tile_;
  DeviceBytes products_;
  cudaStream_t stream_;
  int multiprocessors_;
  cublasHandle_t cublas_ = nullptr;
};
#else
struct Unfused {
  Unfused(const std::vector<float>&, const std::vector<float>&, const Settings&, cudaStream_t) {}
  std::optional<double> median_ms(int64_t, const StreamTimer&) const { return {}; }
};
#endif

void run(const Settings& settings, bench::Report& report) {
  const StreamTimer timer;
  const Mixture mixture(settings.cols);
  const std::vector<float> base = mixture.points(settings.rows, 11);
  const std::vector<float> queries = mixture.points(settings.queries, 12);
  const DeviceBytes device_base(base);
  const DeviceBytes device_queries(queries);
  const auto view = [&](const DeviceBytes& array, int64_t rows) {
    return MatrixView(array.as<void>(), DType::f32, {rows, settings.cols, settings.cols}, MemorySpace::cuda(0));
  };
  const Unfused unfused(base, queries, settings, timer.stream());
  ResourceOptions options;
  options.device = Device::cuda(0);
  options.stream = timer.stream();
  const Resources resources(options);

  const auto rows = static_cast<double>(settings.rows);
  const auto query_rows = static_cast<double>(settings.queries);
  const double product = product_ms(query_rows, rows, static_cast<double>(settings.cols));
  const double read = read_ms(4 * query_rows * rows);
  report.note(cuda_devices().front().name + "; floor: the product alone; read_ms: one read of all distances");
  for (const int64_t k : {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048}) {
    const auto results = static_cast<size_t>(settings.queries * k);
    const DeviceBytes ids(results * 8);
    const DeviceBytes distances(results * 4);
    const NeighborsView out{ids.as<int64_t>(), distances.as<float>(), settings.queries, k, MemorySpace::cuda(0)};
    const KnnParams params{.k = k, .metric = Metric::sqeuclidean};
    const double fused =
        timer
            .of(settings.runs,
                [&] {
                  knn(view(device_queries, settings.queries), view(device_base, settings.rows), out, params, resources);
                })
            .median;
    const std::optional<double> apart = unfused.median_ms(k, timer);
    bench::Row row{.name = "k = " + std::to_string(k),
                   .shape = std::to_string(settings.queries) + " queries in " + std::to_string(settings.rows) + " x " +
                            std::to_string(settings.cols) + " f32",
                   .median_ms = fused,
                   .runs = settings.runs,
                   .clock = "cuda",
                   .floor_ms = product,
                   .figures = {{"read_ms", read}}};
    if (apart) row.peers.emplace_back("unfused", *apart);
    report.row(row);
  }
}

const kith::bench::Registered known(
    {.name = "curves_cuda",
     .about = "exact search over k on a GPU, fused and not",
     .options = {"--rows", "--queries", "--cols", "--runs"},
     .needs_gpu = true,
     .run = [](const bench::Options& options, bench::Report& report) { run(parse(options), report); }});

}  // namespace
