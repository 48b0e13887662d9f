// What filters and ranges cost on a GPU beside a search of all rows in the same run: the mixture of mixture.hpp,
// squared L2, k = 10, f32.
//
//   filter_range_cuda_bench [--rows N] [--queries N] [--runs N] [--out FILE]
//
// Times are medians of CUDA events around whole calls. A filter is packed bits of random rows; "device" is a base in
// device memory, "index" a prepared one, "host" one in ordinary host memory. Radii are those of the 10th, 100th and
// 1000th neighbour of a middling query; results of ranges come to the host. The floor is the
// product of the queries and the kept rows, or one read of these (of halves, where
// an index has them), their copy from the host, or that of the results to it, whichever takes longest.
#include <kith/kith.hpp>

#include "cuda_timing.hpp"
#include "driver/benchmark.hpp"
#include "floor.hpp"
#include "mixture.hpp"

#include <algorithm>
#include <cstdio>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace kith;

constexpr int64_t kCols = 128;
constexpr int64_t kNeighbors = 10;
constexpr double kShares[] = {0.001, 0.01, 0.1, 0.5, 0.9, 0.999};

// Where the base is, and what one of its rows must go through at least.
struct Where {
  const char* name;
  double row_floor;
};
constexpr double kRowBytes = kCols * sizeof(float);
const Where kDevice{"device", read_ms(kRowBytes)};
const Where kIndex{"index", read_ms(kRowBytes / 2)};
const Where kHost{"host", copy_ms(kRowBytes)};

struct Settings {
  int64_t rows = 1000000;
  int64_t queries = 10000;
  int64_t runs = 5;
};

Settings parse(const bench::Options& options) {
  Settings settings;
  settings.rows = options.number("--rows", settings.rows);
  settings.queries = options.number("--queries", settings.queries);
  settings.runs = std::max<int64_t>(1, options.number("--runs", settings.runs));
  return settings;
}

std::vector<uint8_t> random_bits(int64_t rows, double share) {
  std::mt19937 random(5);
  std::vector<uint8_t> bits(static_cast<size_t>((rows + 7) / 8));
  for (int64_t i = 0; i < rows; ++i) {
    if (static_cast<double>(random()) * 0x1p-32 < share) bits[static_cast<size_t>(i / 8)] |= 1u << (i % 8);
  }
  return bits;
}

class Bench {
 public:
  Bench(const Settings& settings, bench::Report& report)
      : settings_(settings),
        report_(report),
        base_(Mixture(kCols).points(settings.rows, 11)),
        queries_(Mixture(kCols).points(settings.queries, 12)),
        device_base_(base_),
        device_queries_(queries_),
        index_("Flat", {.metric = Metric::sqeuclidean}) {
    ResourceOptions options;
    options.device = Device::cuda(0);
    options.stream = timer_.stream();
    resources_ = Resources(options);
    index_.add(host_base(), Ownership::borrow, resources_);
    report_.note(cuda_devices().front().name);
  }

  void run() {
    for (const int64_t queries : {settings_.queries, int64_t{100}, int64_t{1}}) {
      filters(kDevice, queries, [&](const MatrixView& q, const NeighborsView& out, const RowFilter& filter) {
        knn(q, on_device(device_base_, settings_.rows), out, {kNeighbors, Metric::sqeuclidean, true, filter},
            resources_);
      });
      filters(kIndex, queries, [&](const MatrixView& q, const NeighborsView& out, const RowFilter& filter) {
        index_.search(q, out, {.k = kNeighbors, .filter = filter}, resources_);
      });
    }
    filters(kHost, settings_.queries, [&](const MatrixView& q, const NeighborsView& out, const RowFilter& filter) {
      knn(q, host_base(), out, {kNeighbors, Metric::sqeuclidean, true, filter}, resources_);
    });
    ranges();
  }

 private:
  MatrixView host_base() const { return {base_.data(), settings_.rows, kCols}; }
  static MatrixView on_device(const DeviceBytes& array, int64_t rows) {
    return {array.as<void>(), DType::f32, {rows, kCols, kCols}, MemorySpace::cuda(0)};
  }
  template <typename Call>
  double median(const Call& call) const {
    return timer_.of(settings_.runs, call).median;
  }

  // The floor of a search of that many rows.
  static double floor_of(const Where& where, int64_t queries, double rows) {
    return std::max(product_ms(static_cast<double>(queries), rows, kCols), rows * where.row_floor);
  }

  template <typename Search>
  void filters(const Where& where, int64_t queries, const Search& search) {
    const DeviceBytes ids(static_cast<size_t>(queries * kNeighbors) * 8);
    const DeviceBytes distances(static_cast<size_t>(queries * kNeighbors) * 4);
    const NeighborsView out{ids.as<int64_t>(), distances.as<float>(), queries, kNeighbors, MemorySpace::cuda(0)};
    const MatrixView q = on_device(device_queries_, queries);
    const double all = median([&] { search(q, out, RowFilter()); });
    const auto rows = static_cast<double>(settings_.rows);
    const double all_floor = floor_of(where, queries, rows);
    const std::string name = std::string(where.name) + ", " + std::to_string(queries) + " queries, ";
    row(name + "all rows", all, all_floor, {});
    for (const double share : kShares) {
      const std::vector<uint8_t> bits = random_bits(settings_.rows, share);
      const double time = median([&] { search(q, out, RowFilter::bits(bits.data(), settings_.rows)); });
      char kept[32];
      std::snprintf(kept, sizeof kept, "%g kept", share);
      row(name + kept, time, floor_of(where, queries, share * rows), {{"over_unfiltered", time / all}});
    }
  }

  void row(const std::string& name, double milliseconds, double floor,
           const std::vector<std::pair<std::string, double>>& figures) {
    report_.row({.name = name,
                 .shape = std::to_string(settings_.rows) + " x " + std::to_string(kCols) + " f32",
                 .median_ms = milliseconds,
                 .runs = settings_.runs,
                 .clock = "cuda",
                 .floor_ms = floor,
                 .figures = figures});
  }

  // The floor of a search whose results come to the host.
  double range_floor(int64_t results) const {
    const double copied = copy_ms(static_cast<double>(results) * (sizeof(int64_t) + sizeof(float)));
    return std::max(floor_of(kDevice, settings_.queries, static_cast<double>(settings_.rows)), copied);
  }

  void ranges() {
    const MatrixView q = on_device(device_queries_, settings_.queries);
    const MatrixView base = on_device(device_base_, settings_.rows);
    const double nearest = median([&] { knn(q, base, {kNeighbors, Metric::sqeuclidean}, resources_); });
    row("10 nearest, results on the host", nearest, range_floor(settings_.queries * kNeighbors), {});
    const int64_t some = std::min<int64_t>(settings_.queries, 101);
    const Neighbors far = knn(on_device(device_queries_, some), base, {1000, Metric::sqeuclidean}, resources_);
    for (const int64_t n : {10, 100, 1000}) {
      std::vector<float> radii;
      for (int64_t i = 0; i < some; ++i) radii.push_back(far.distances(i)[n - 1]);
      std::sort(radii.begin(), radii.end());
      const RangeParams params{radii[radii.size() / 2], Metric::sqeuclidean};
      int64_t found = 0;
      const double time = median([&] { found = range_search(q, base, params, resources_).size(); });
      const double prepared =
          median([&] { found = index_.range_search(q, {.radius = params.radius}, resources_).size(); });
      const double floor = range_floor(found);
      const std::string name = "range of the " + std::to_string(n) + " nearest, ";
      const auto rows = static_cast<double>(found);
      row(name + "device", time, floor, {{"found", rows}, {"over_nearest", time / nearest}});
      row(name + "index", prepared, floor, {{"found", rows}, {"over_nearest", prepared / nearest}});
    }
  }

  Settings settings_;
  bench::Report& report_;
  std::vector<float> base_;
  std::vector<float> queries_;
  DeviceBytes device_base_;
  DeviceBytes device_queries_;
  Index index_;
  StreamTimer timer_;
  Resources resources_;
};

const kith::bench::Registered known(
    {.name = "filter_range_cuda",
     .about = "filters and ranges on a GPU, beside a search of all rows",
     .options = {"--rows", "--queries", "--runs"},
     .needs_gpu = true,
     .run = [](const bench::Options& options, bench::Report& report) { Bench(parse(options), report).run(); }});

}  // namespace
