// How fast exact search is on a GPU: random rows, all neighbours by squared L2, beside the floor of the hardware.
//
//   exact_cuda_bench [--rows N] [--queries N] [--cols N] [--seconds S] [--clock GHZ] [--out FILE]
//
// "index" searches vectors that lie on the GPU, "knn" brings them there first; both include queries in and results out.
// The floor is the arithmetic alone: two double-precision instructions for each (query, row, column). GFLOP/s counts 2,
// a multiplication and an addition, as for a matrix product. The best of three runs is shown; where a run would take
// longer than --seconds, fewer queries are searched.
#include <kith/kith.hpp>

#include "table.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>
#include <string>
#include <vector>

namespace {

struct Settings {
  int64_t rows = 1000000;
  int64_t queries = 10000;
  int64_t cols = 128;
  double seconds = 10;
  double clock = 1.98;  // GHz, an H200's highest
  std::string out;
};

Settings parse(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (value != nullptr && name == "--rows")
      settings.rows = std::atoll(value);
    else if (value != nullptr && name == "--queries")
      settings.queries = std::atoll(value);
    else if (value != nullptr && name == "--cols")
      settings.cols = std::atoll(value);
    else if (value != nullptr && name == "--seconds")
      settings.seconds = std::atof(value);
    else if (value != nullptr && name == "--clock")
      settings.clock = std::atof(value);
    else if (value != nullptr && name == "--out")
      settings.out = value;
    else
      throw kith::InvalidArgument("unknown option or no value: " + name);
  }
  return settings;
}

// Double-precision instructions that one multiprocessor starts in a clock; 2 on the GPUs made for graphics.
int f64_lanes(int compute_capability) {
  switch (compute_capability) {
    case 80: return 32;
    case 90:
    case 100: return 64;
    default: return 2;
  }
}

template <typename Call>
double seconds_of(const Call& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

template <typename Call>
double best_of_three(const Call& call) {
  return std::min({seconds_of(call), seconds_of(call), seconds_of(call)});
}

template <typename T>
std::vector<T> random_values(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<T> values(static_cast<size_t>(count));
  for (T& value : values) value = static_cast<T>(random() >> 24);
  return values;
}

template <typename T>
void measure(const char* dtype, const Settings& settings, double floor_rate, const Table& table) {
  using namespace kith;
  const std::vector<T> base = random_values<T>(settings.rows * settings.cols, 1);
  const std::vector<T> queries = random_values<T>(settings.queries * settings.cols, 2);
  const MatrixView base_view(base.data(), settings.rows, settings.cols);
  const MatrixView all_queries(queries.data(), settings.queries, settings.cols);
  ResourceOptions options;
  options.device = Device::cuda(0);
  const Resources resources(options);
  Index index("Flat", {.metric = Metric::sqeuclidean});
  index.add(base_view, Ownership::borrow, resources);

  for (const int64_t k : {10, 100}) {
    const int64_t few = std::min<int64_t>(settings.queries, 1000);
    const MatrixView first = all_queries.slice(0, few);
    index.search(first, k, resources);  // wakes the GPU
    const double per_query = seconds_of([&] { index.search(first, k, resources); }) / static_cast<double>(few);
    const int64_t count = std::clamp(static_cast<int64_t>(settings.seconds / per_query), int64_t{1}, settings.queries);
    const MatrixView part = all_queries.slice(0, count);
    const double elements =
        static_cast<double>(count) * static_cast<double>(settings.rows) * static_cast<double>(settings.cols);
    const double floor = 2 * elements / floor_rate;
    const auto show = [&](const char* what, double seconds) {
      char text[160];
      std::snprintf(text, sizeof text, "%-5s %-5s %5lld %8lld %10.3f %10.0f %10.3f %8.1fx", what, dtype,
                    static_cast<long long>(k), static_cast<long long>(count), seconds, 2e-9 * elements / seconds, floor,
                    seconds / floor);
      table.line(text);
    };
    show("index", best_of_three([&] { index.search(part, k, resources); }));
    show("knn", best_of_three([&] { knn(part, base_view, {.k = k, .metric = Metric::sqeuclidean}, resources); }));
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Settings settings = parse(argc, argv);
    const std::vector<kith::DeviceInfo> devices = kith::cuda_devices();
    if (devices.empty()) {
      std::fprintf(stderr, "exact_cuda_bench: no CUDA device here, or a build without CUDA\n");
      return 1;
    }
    const kith::DeviceInfo& device = devices.front();
    const double floor_rate = 1e9 * settings.clock * device.multiprocessors * f64_lanes(device.compute_capability);
    const Table table(settings.out);
    table.line(device.name + ": exact search of " + std::to_string(settings.rows) + " x " +
               std::to_string(settings.cols) + ", sqeuclidean");
    table.line("what  dtype     k  queries    seconds    GFLOP/s      floor    ratio");
    measure<float>("f32", settings, floor_rate, table);
    measure<uint8_t>("u8", settings, floor_rate, table);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "exact_cuda_bench: %s\n", error.what());
    return 1;
  }
}
