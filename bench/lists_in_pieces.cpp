// Lists larger than a GPU's memory limit, searched in pieces: milliseconds beside bytes / rate of the bus, and beside
// lists that lie on the GPU, whose bytes must be the same. lists_in_pieces.py does the same with files.
//
//   kith_bench lists_in_pieces [--rows 100000000] [--cols 96] [--factory IVF4096,PQ32] [--times 4] [--queries 10000]
//                              [--probes 32] [--k 10] [--out FILE]
//
// Rows are those of computed_mixture.hpp. The limit is the bytes of the lists divided by --times; the floor
// is these bytes at 55 GB/s.
#include <kith/kith.hpp>

#include "computed_mixture.hpp"
#include "driver/benchmark.hpp"
#include "driver/timing.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace {

using namespace kith;

constexpr double kBus = 55e9;
constexpr int64_t kRuns = 5;

Resources within(int64_t device_limit) {
  ResourceOptions options;
  options.device = Device::cuda(0);
  if (device_limit > 0) options.device_memory_limit = device_limit;
  return Resources(options);
}

void run(const bench::Options& options, bench::Report& report) {
  const int64_t rows = options.number("--rows", 100'000'000);
  const int64_t cols = options.number("--cols", 96);
  const int64_t count = options.number("--queries", 10'000);
  const SearchParams params{.k = options.number("--k", 10), .probes = options.number("--probes", 32)};
  const std::string factory = options.text("--factory", "IVF4096,PQ32");
  report.note(cuda_devices().front().name);
  const bench::Watch making;
  std::vector<uint8_t> base(static_cast<size_t>(rows * cols));
  bench::ComputedMixture(rows, cols).read_rows(0, rows, base.data());
  const MatrixView x(base.data(), DType::u8, {rows, cols, cols});
  const double made = making.seconds().wall;
  const std::string shape = std::to_string(rows) + " x " + std::to_string(cols);
  const bench::Watch building;
  Index index(factory);
  index.train(x.slice(0, std::min<int64_t>(rows, 500'000)), within(0));
  index.add(x, Ownership::copy, within(0));
  const int64_t size = index.info().bytes.host;
  report.row({.name = factory + ", build",
              .shape = shape,
              .ms = 1e3 * building.seconds().wall,
              .clock = "wall",
              .figures = {{"rows_made_s", made}}});
  std::vector<float> queries(static_cast<size_t>(count * cols));
  for (int64_t i = 0; i < count * cols; ++i) {
    const int64_t row = 7 + i / cols * ((rows - 7) / count);
    queries[static_cast<size_t>(i)] = static_cast<float>(base[static_cast<size_t>(row * cols + i % cols)]) + 0.25f;
  }
  const MatrixView asked(queries.data(), count, cols);
  const int64_t limit = size / options.number("--times", 4);
  const bench::Watch beginning;
  Neighbors found = index.search(asked, params, within(limit));  // which pins the lists
  const double first = beginning.seconds().wall;
  const double spent = bench::best_seconds(kRuns, [&] { found = index.search(asked, params, within(limit)); }).wall;
  const Neighbors truth = index.search(asked, params, within(0));  // which brings the lists to the GPU, to stay
  const double resident = bench::best_seconds(kRuns, [&] { (void)index.search(asked, params, within(0)); }).wall;
  const auto values = static_cast<size_t>(count * params.k);
  const bool same = std::memcmp(found.ids(), truth.ids(), values * sizeof(int64_t)) == 0 &&
                    std::memcmp(found.distances(), truth.distances(), values * sizeof(float)) == 0;
  const double floor = static_cast<double>(size) / kBus;
  report.row(
      {.name = factory + ", lists in pieces",
       .shape = shape + ", " + std::to_string(count) + " queries, " + std::to_string(params.probes) +
                " probes, k = " + std::to_string(params.k),
       .ms = 1e3 * spent,
       .runs = kRuns,
       .clock = "wall",
       .floor_ms = 1e3 * floor,
       .peers = {{"resident", 1e3 * resident}},
       .figures = {{"lists_gb", static_cast<double>(size) * 1e-9},
                   {"limit_gb", static_cast<double>(limit) * 1e-9},
                   {"first_ms", 1e3 * first}},
       .labels = {{"results", same ? bench::kSameBytes : bench::kOtherBytes}}});
}

const bench::Registered known({
    .name = "lists_in_pieces",
    .about = "lists larger than a GPU's memory limit, searched in pieces",
    .options = {"--rows", "--cols", "--factory", "--times", "--queries", "--probes", "--k"},
    .needs_gpu = true,
    .run = run,
});

}  // namespace
