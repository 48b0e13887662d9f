// How fast exact distances are computed on a GPU, kernel by kernel, beside the floor of its double-precision units.
//
//   direct_cuda_bench [--part kernels|select|all] [--runs N] [--out FILE]
//
// The canonical kernel takes two instructions for each pair and column, of which a multiprocessor does 64 a clock; the
// matrix units do one multiply-add for each, 128 a clock; hamming counts 16 words of 32 bits a clock. The floor is that
// at the device's clock, or the write of the keys where that takes longer. Times are by CUDA events, the medians of the
// runs. "select" times what the direct engine does with keys: its lists over tiles, and selection over whole rows.
#include <kith/device.hpp>
#include <kith/error.hpp>

#include "cuda_timing.hpp"
#include "driver/benchmark.hpp"
#include "floor.hpp"

#include "core/ordered_key.hpp"
#include "kernels/distance/distance_cuda.hpp"
#include "kernels/distance/inspect_rows_cuda.hpp"
#include "kernels/select/select_cuda.hpp"
#include "kernels/select/select_rows_cuda.hpp"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace kith;

enum class Kernel { lanes, certain, few_columns, bits };

const char* name_of(Kernel kernel) {
  switch (kernel) {
    case Kernel::lanes: return "lanes";
    case Kernel::certain: return "certain";
    case Kernel::few_columns: return "few columns";
    default: return "bits";
  }
}

const char* name_of(KeyKind kind) {
  static constexpr const char* kNames[] = {"l2", "squared_l2", "inner_product", "cosine",
                                           "l1", "linf",       "chi_square",    "hamming"};
  return kNames[static_cast<int>(kind)];
}

// Clocks of a multiprocessor for one pair and column.
double clocks(Kernel kernel, KeyKind kind) {
  if (kernel == Kernel::bits) return 1.0 / 64;
  if (kernel == Kernel::certain) return 1.0 / 128;
  return (kind == KeyKind::inner_product ? 1.0 : 2.0) / 64;
}

struct Shape {
  int64_t queries;
  int64_t rows;
  int64_t cols;
};

std::vector<float> random_values(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = static_cast<float>(random()) * 0x1p-32f;
  return values;
}

class Bench {
 public:
  Bench(bench::Report& report, int64_t runs) : report_(report), runs_(runs), device_(cuda_devices().front()) {
    int khz = 0;
    check(cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0));
    rate_ = 1e3 * khz * device_.multiprocessors;
    report_.note(device_.name + " at " + std::to_string(khz / 1000) + " MHz; distances in double precision");
  }

  void kernels() {
    for (const int64_t cols : {17, 64, 784}) {
      const Shape shape{4000, 4000, cols};
      for (const KeyKind kind : {KeyKind::l2, KeyKind::squared_l2, KeyKind::inner_product, KeyKind::cosine}) {
        measure(Kernel::certain, kind, shape);
      }
      for (const KeyKind kind :
           {KeyKind::l2, KeyKind::inner_product, KeyKind::cosine, KeyKind::l1, KeyKind::linf, KeyKind::chi_square}) {
        measure(Kernel::lanes, kind, shape);
      }
    }
    for (const KeyKind kind : {KeyKind::squared_l2, KeyKind::cosine}) {
      measure(Kernel::certain, kind, {500, 100000, 64});
      measure(Kernel::lanes, kind, {500, 100000, 64});
    }
    equal_ = true;  // no pair of which is certain
    measure(Kernel::certain, KeyKind::l2, {4000, 4000, 64});
    equal_ = false;
    measure(Kernel::certain, KeyKind::l2, {1, 20000, 8192});
    measure(Kernel::certain, KeyKind::l2, {100, 20000, 8192});
    for (const int64_t cols : {2, 3, 9, 16}) {
      measure(Kernel::few_columns, KeyKind::l2, {8, 1000000, cols});
      measure(Kernel::few_columns, KeyKind::l1, {4000, 4000, cols});
    }
    measure(Kernel::bits, KeyKind::hamming, {2000, 100000, 64});
    measure(Kernel::bits, KeyKind::hamming, {2000, 100000, 8});
    measure(Kernel::bits, KeyKind::hamming, {2000, 100000, 100});
  }

  void select() {
    for (const bool equal : {false, true}) {
      select(500, 100000, 10, equal);
      select(1000, 16384, 10, equal);
      select(2000, 100000, 10, equal);
      select(1, 1000000, 10, equal);
      select(8, 1000000, 10, equal);
      select(2000, 100000, 5000, equal);
      select(10000, 4096, 1000, equal);
    }
  }

 private:
  void measure(Kernel kernel, KeyKind kind, const Shape& shape) {
    const bool bytes = kernel == Kernel::bits;
    const int64_t value_bytes = bytes ? 1 : 4;
    const auto matrix = [&](int64_t rows, uint32_t seed) {
      return DeviceBytes(equal_ ? std::vector<float>(static_cast<size_t>(rows * shape.cols), 0.7f)
                                : random_values(rows * shape.cols * value_bytes / 4 + 4, seed));
    };
    const DeviceBytes queries = matrix(shape.queries, 1);
    const DeviceBytes rows = matrix(shape.rows, 2);
    const DeviceBytes query_norms(static_cast<size_t>(shape.queries) * 8);
    const DeviceBytes row_norms(static_cast<size_t>(shape.rows) * 8);
    const DeviceBytes keys(static_cast<size_t>(shape.queries * shape.rows) * 4);
    DistanceTask task;
    task.queries = {queries.as<void>(), bytes ? DType::u8 : DType::f32, shape.cols, shape.queries};
    task.rows = {rows.as<void>(), bytes ? DType::u8 : DType::f32, shape.cols, shape.rows};
    task.cols = shape.cols;
    task.kind = kind;
    task.keys = keys.as<uint32_t>();
    task.stride = shape.rows;
    if (kind == KeyKind::cosine) {
      launch_inspect_rows(task.queries, shape.cols, {.inverse_norms = query_norms.as<double>()}, timer_.stream());
      launch_inspect_rows(task.rows, shape.cols, {.inverse_norms = row_norms.as<double>()}, timer_.stream());
      task.queries.inverse_norms = query_norms.as<double>();
      task.rows.inverse_norms = row_norms.as<double>();
    }
    const Times times = timer_.of(runs_, [&] {
      switch (kernel) {
        case Kernel::lanes: return launch_lane_distance(task, timer_.stream());
        case Kernel::certain: return launch_certain_distance(task, timer_.stream());
        case Kernel::few_columns: return launch_few_columns_distance(task, timer_.stream());
        default: return launch_bit_distance(task, timer_.stream());
      }
    });
    const double pairs = static_cast<double>(shape.queries) * static_cast<double>(shape.rows);
    const double steps = pairs * static_cast<double>(shape.cols);
    const double floor = std::max(1e3 * steps * clocks(kernel, kind) / rate_, read_ms(4 * pairs));
    const std::string name = std::to_string(shape.queries) + " queries in " + std::to_string(shape.rows) + " x " +
                             std::to_string(shape.cols);
    report_.row({.name = name + ", " + name_of(kind) + " by " + name_of(kernel) + (equal_ ? ", all equal" : ""),
                 .shape = name,
                 .median_ms = times.median,
                 .runs = runs_,
                 .clock = "cuda",
                 .floor_ms = floor,
                 .figures = {{"steps_per_second", 1e3 * steps / times.median}}});
  }

  void select(int64_t queries, int64_t rows, int64_t k, bool equal) {
    std::vector<float> values = random_values(queries * rows, 3);
    if (equal) std::fill(values.begin(), values.end(), 0.5f);
    const DeviceBytes plain(values);
    std::vector<uint32_t> ordered(values.size());
    std::transform(values.begin(), values.end(), ordered.begin(), [](float value) { return ordered_key(value); });
    const DeviceBytes keys(ordered);
    const DeviceBytes neighbors(static_cast<size_t>(queries * k) * 8);
    const DeviceBytes bounds(static_cast<size_t>(queries) * 4);
    const DeviceLists lists{neighbors.as<uint64_t>(), bounds.as<uint32_t>(), queries, k};
    const int64_t tile = std::max<int64_t>((int64_t{1} << 24) / std::min<int64_t>(queries, 1024), k);
    const Times over_tiles = timer_.of(runs_, [&] {
      check(cudaMemsetAsync(lists.neighbors, 0xFF, static_cast<size_t>(queries * k) * 8, timer_.stream()));
      for (int64_t first = 0; first < rows; first += tile) {
        launch_select(lists, {keys.as<uint32_t>() + first, rows, std::min(tile, rows - first), first}, first,
                      timer_.stream());
      }
    });
    const Times sorted = timer_.of(runs_, [&] { launch_sort(lists, rows, timer_.stream()); });
    const DeviceBytes selected(static_cast<size_t>(queries * k) * 4);
    const DeviceBytes columns(static_cast<size_t>(queries * k) * 4);
    const SelectInput input{plain.as<float>(), queries, rows, rows, nullptr, nullptr};
    const SelectProblem problem = problem_of(input, k, SelectOrder::smallest);
    const SelectPlan plan = plan_select(problem, device_.multiprocessors);
    const DeviceBytes workspace(static_cast<size_t>(std::max<int64_t>(plan.workspace_bytes, 1)));
    const Times whole = timer_.of(runs_, [&] {
      launch_select_rows(input, {selected.as<float>(), columns.as<int32_t>(), nullptr}, problem, plan,
                         workspace.as<void>(), timer_.stream());
    });
    const std::string shape = std::to_string(queries) + " x " + std::to_string(rows) + " keys";
    const std::string name = "select, " + shape + ", k = " + std::to_string(k) + (equal ? ", equal" : ", random");
    report_.row({.name = name,
                 .shape = shape,
                 .median_ms = whole.median,
                 .runs = runs_,
                 .clock = "cuda",
                 .figures = {{"over_tiles_ms", over_tiles.median}, {"sort_ms", sorted.median}}});
  }

  bench::Report& report_;
  const int64_t runs_;
  const DeviceInfo device_;
  StreamTimer timer_;
  double rate_ = 0;  // clocks of all multiprocessors in a second
  bool equal_ = false;
};

void run(const bench::Options& options, bench::Report& report) {
  const std::string part = options.text("--part", "all");
  Bench bench(report, std::max<int64_t>(1, options.number("--runs", 7)));
  if (part == "kernels" || part == "all") bench.kernels();
  if (part == "select" || part == "all") bench.select();
}

const kith::bench::Registered known(
    {.name = "direct_cuda",
     .about = "exact distances on a GPU, kernel by kernel",
     .options = {"--part", "--runs"},
     .needs_gpu = true,
     .run = &run});

}  // namespace
