// How fast selection over rows is on a GPU, beside the floor of the hardware and two peers.
//
//   select_cuda_bench [--part goals|hard|curve|paths|all] [--out FILE]
//
// Times are by CUDA events, data on the device, results sorted; the median of the runs. The floor is one read of the
// matrix and one write of the result at 4.2 TB/s. Matrices that would fit the cache are rotated with others. The peers'
// figures are those of peers_h200.csv.
#include <kith/device.hpp>
#include <kith/error.hpp>

#include "driver/benchmark.hpp"
#include "floor.hpp"
#include "peers.hpp"

#include "cuda/error.hpp"
#include "kernels/select/select_rows_cuda.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace kith;

constexpr int64_t kCacheBytes = 256 << 20;  // several times the L2
constexpr int kRuns = 15;

enum class Fill { random, sorted, reversed, equal };

const char* name_of(Fill fill) {
  switch (fill) {
    case Fill::random: return "random";
    case Fill::sorted: return "sorted";
    case Fill::reversed: return "reversed";
    default: return "equal";
  }
}

struct Work {
  int64_t rows;
  int64_t cols;
  int64_t k;
  SelectPath path = SelectPath::automatic;
};

struct CudaFree {
  void operator()(void* data) const { (void)cudaFree(data); }
};
using DeviceMemory = std::unique_ptr<void, CudaFree>;

DeviceMemory allocate(int64_t bytes) {
  void* data = nullptr;
  KITH_CUDA_CHECK(cudaMalloc(&data, static_cast<size_t>(std::max<int64_t>(bytes, 1))));
  return DeviceMemory(data);
}

// A few different rows, repeated down the matrix: making 5 GB of random values on the host would take too long.
void fill_rows(float* matrix, int64_t rows, int64_t cols, Fill fill) {
  const int64_t different = std::min<int64_t>(rows, std::max<int64_t>(1, (int64_t{16} << 20) / cols));
  std::vector<float> values(static_cast<size_t>(different * cols), 0.5f);
  std::mt19937 random(1);
  for (int64_t i = 0; i < different && fill != Fill::equal; ++i) {
    float* const row = values.data() + i * cols;
    for (int64_t j = 0; j < cols; ++j) row[j] = static_cast<float>(random() >> 8) * 0x1p-24f;
    if (fill == Fill::sorted) std::sort(row, row + cols);
    if (fill == Fill::reversed) std::sort(row, row + cols, std::greater<>());
  }
  for (int64_t first = 0; first < rows; first += different) {
    const int64_t count = std::min(different, rows - first);
    const size_t bytes = static_cast<size_t>(count * cols) * sizeof(float);
    if (first == 0) {
      KITH_CUDA_CHECK(cudaMemcpy(matrix, values.data(), bytes, cudaMemcpyHostToDevice));
    } else {
      KITH_CUDA_CHECK(cudaMemcpy(matrix + first * cols, matrix, bytes, cudaMemcpyDeviceToDevice));
    }
  }
}

// The matrices stay from one measurement to the next where the shape is the same.
struct Data {
  int64_t rows = 0;
  int64_t cols = 0;
  Fill fill = Fill::random;
  std::vector<DeviceMemory> matrices;

  void prepare(int64_t wanted_rows, int64_t wanted_cols, Fill wanted) {
    if (rows == wanted_rows && cols == wanted_cols && fill == wanted) return;
    matrices.clear();
    rows = wanted_rows;
    cols = wanted_cols;
    fill = wanted;
    const int64_t bytes = rows * cols * static_cast<int64_t>(sizeof(float));
    const int64_t count = std::max<int64_t>(1, kCacheBytes / bytes);
    for (int64_t i = 0; i < count; ++i) {
      matrices.push_back(allocate(bytes));
      auto* const matrix = static_cast<float*>(matrices.back().get());
      if (i == 0) {
        fill_rows(matrix, rows, cols, fill);
      } else {
        KITH_CUDA_CHECK(cudaMemcpy(matrix, matrices[0].get(), static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice));
      }
    }
  }
};

double median_ms(const Work& work, const Data& data, int multiprocessors) {
  const DeviceMemory values = allocate(work.rows * work.k * 4);
  const DeviceMemory columns = allocate(work.rows * work.k * 4);
  SelectInput input{nullptr, work.rows, work.cols, work.cols, nullptr, nullptr};
  const SelectOutput output{static_cast<float*>(values.get()), static_cast<int32_t*>(columns.get()), nullptr};
  const SelectProblem problem = problem_of(input, work.k, SelectOrder::smallest);
  const SelectPlan plan = plan_select(problem, multiprocessors, work.path);
  const DeviceMemory workspace = allocate(plan.workspace_bytes);
  cudaEvent_t start;
  cudaEvent_t stop;
  KITH_CUDA_CHECK(cudaEventCreate(&start));
  KITH_CUDA_CHECK(cudaEventCreate(&stop));
  std::vector<float> times;
  constexpr int kWarmUps = 3;
  for (int run = 0; run < kWarmUps + kRuns; ++run) {
    input.values = static_cast<const float*>(data.matrices[static_cast<size_t>(run) % data.matrices.size()].get());
    KITH_CUDA_CHECK(cudaEventRecord(start));
    launch_select_rows(input, output, problem, plan, workspace.get(), nullptr);
    KITH_CUDA_CHECK(cudaEventRecord(stop));
    KITH_CUDA_CHECK(cudaEventSynchronize(stop));
    float ms = 0;
    KITH_CUDA_CHECK(cudaEventElapsedTime(&ms, start, stop));
    if (run >= kWarmUps) times.push_back(ms);
  }
  KITH_CUDA_CHECK(cudaEventDestroy(start));
  KITH_CUDA_CHECK(cudaEventDestroy(stop));
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// Measures, and reports what it measured.
class SelectTable {
 public:
  SelectTable(bench::Report& report, int multiprocessors) : report_(report), multiprocessors_(multiprocessors) {}

  // The cases that follow are named after it.
  void section(const std::string& name) { section_ = name.empty() ? "" : name + ", "; }

  void measure(const Work& work, Fill fill) {
    data_.prepare(work.rows, work.cols, fill);
    static constexpr const char* kPaths[] = {"automatic", "registers", "filter", "warp_queue", "radix"};
    const SelectPlan plan = plan_select({work.rows, work.cols, work.k}, multiprocessors_, work.path);
    const double ms = median_ms(work, data_, multiprocessors_);
    const double bytes = 4.0 * static_cast<double>(work.rows) * static_cast<double>(work.cols + 2 * work.k);
    const double floor = read_ms(bytes);
    const std::string shape = std::to_string(work.rows) + " x " + std::to_string(work.cols);
    bench::Row row{.name = section_ + shape + ", k = " + std::to_string(work.k) + ", " + name_of(fill),
                   .shape = shape + " f32",
                   .median_ms = ms,
                   .runs = kRuns,
                   .clock = "cuda",
                   .floor_ms = floor,
                   .labels = {{"data", name_of(fill)}, {"path", kPaths[static_cast<int>(plan.path)]}}};
    if (work.path != SelectPath::automatic) row.name += std::string(", ") + kPaths[static_cast<int>(work.path)];
    if (fill == Fill::random && work.path == SelectPath::automatic) {
      peers_.of(shape + " k=" + std::to_string(work.k)).add_to(row);
    }
    report_.row(row);
  }

 private:
  bench::Report& report_;
  std::string section_;
  int multiprocessors_;
  Peers peers_{"select"};
  Data data_;
};

void run_goals(SelectTable& table) {
  table.section("");
  table.measure({10000, 128000, 10}, Fill::random);
  table.measure({10000, 128000, 100}, Fill::random);
  table.measure({10000, 128000, 1000}, Fill::random);
  table.measure({10000, 128000, 2048}, Fill::random);
  table.measure({10000, 1000, 10}, Fill::random);
  table.measure({10000, 1000, 100}, Fill::random);
  table.measure({10000, 1000, 1000}, Fill::random);
  table.measure({1, 10000000, 10}, Fill::random);
  table.measure({1, 10000000, 100}, Fill::random);
  table.measure({1, 10000000, 1000}, Fill::random);
}

void run_hard(SelectTable& table) {
  table.section("hard rows");
  for (const int64_t cols : {1000, 128000}) {
    for (const Fill fill : {Fill::random, Fill::sorted, Fill::reversed, Fill::equal}) {
      for (const int64_t k : {10, 100, 1000, 2048}) {
        if (k <= cols) table.measure({10000, cols, k}, fill);
      }
    }
  }
  for (const Fill fill : {Fill::random, Fill::sorted, Fill::reversed, Fill::equal})
    table.measure({1, 10000000, 100}, fill);
}

void run_curve(SelectTable& table) {
  table.section("over the row length");  // the 2019 paper's figure 3
  for (const int64_t cols : {1000, 2000, 4000, 8000, 16000, 32000, 64000, 128000}) {
    for (const int64_t k : {100, 1000}) table.measure({10000, cols, k}, Fill::random);
  }
}

void run_paths(SelectTable& table) {
  table.section("other paths");  // not chosen for their speed: the paper's queues, and any k
  for (const int64_t k : {10, 100, 1000}) table.measure({10000, 1000, k, SelectPath::warp_queue}, Fill::random);
  for (const int64_t k : {10, 100, 1000, 2048}) {
    table.measure({10000, 128000, k, SelectPath::warp_queue}, Fill::random);
  }
  table.measure({1000, 128000, 5000}, Fill::random);
  table.measure({1000, 128000, 128000}, Fill::random);
}

void run(const bench::Options& options, bench::Report& report) {
  const std::string part = options.text("--part", "all");
  const DeviceInfo device = cuda_devices().front();
  report.note(device.name + "; selection over rows of f32, k smallest, sorted, with columns");
  SelectTable table(report, device.multiprocessors);
  if (part == "goals" || part == "all") run_goals(table);
  if (part == "hard" || part == "all") run_hard(table);
  if (part == "curve" || part == "all") run_curve(table);
  if (part == "paths" || part == "all") run_paths(table);
}

const kith::bench::Registered known(
    {.name = "select_cuda",
     .about = "selection over rows on a GPU",
     .options = {"--part"},
     .needs_gpu = true,
     .run = &run});

}  // namespace
