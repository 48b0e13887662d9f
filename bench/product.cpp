// The products of exact search on the CPU, by format and instruction set: rates of the kernels alone, without
// candidates, and of whole searches, each beside the rate of f32.
//
//   kith_bench product [--rows 100000] [--cols 128] [--queries 1000] [--k 10] [--threads 2] [--rounds 5] [--target AMX]
#include <kith/index.hpp>
#include <kith/knn.hpp>

#include "core/cpu_target.hpp"
#include "core/float_mode.hpp"
#include "kernels/panels/packed_queries.hpp"
#include "rows/stored_row.hpp"
#include "kernels/panels/byte_product.hpp"
#include "kernels/panels/packed_rows.hpp"
#include "driver/benchmark.hpp"
#include "driver/timing.hpp"
#include "mixture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace {

using namespace kith;

struct Settings {
  int64_t rows = 100000;
  int64_t cols = 128;
  int64_t queries = 1000;
  int64_t k = 10;
  int64_t rounds = 5;
};

// The mixture, within 0 and 255.
std::vector<float> mixture(int64_t rows, int64_t cols, uint64_t seed) {
  std::vector<float> values = Mixture(cols).points(rows, seed);
  for (float& value : values) value = std::clamp(value, 0.0f, 255.0f);
  return values;
}

class Nothing final : public PanelHits, public BytePanelHits {
 public:
  void on_hit(int64_t, int64_t, const float*) override { ++hits; }
  void on_hit(int64_t, int64_t, uint64_t, const int32_t*) override { ++hits; }
  int64_t hits = 0;
};

// One thread's rate over rows that stay in the cache, in multiplications and additions per second; nothing passes. Of
// screened floats it is the screen's.
double kernel_rate(PanelFormat format, const MatrixView& queries, const MatrixView& base, const Settings& settings) {
  const Resources resources;
  const DefaultFloatMode mode;
  const int64_t rows = std::min<int64_t>(base.rows(), 4096);
  const int64_t count = std::min<int64_t>(queries.rows(), 256);
  ProgressMeter meter("bench", 1, resources);
  PackedRows packed(KeyKind::squared_l2, format, std::vector<float>(static_cast<size_t>(settings.cols)), rows,
                    resources);
  packed.pack(base.slice(0, rows), {}, meter, resources);
  std::vector<float> widened(static_cast<size_t>(count * settings.cols));
  for (int64_t i = 0; i < count; ++i) widen_row(queries, i, widened.data() + i * settings.cols);
  PackedQueries set(KeyKind::squared_l2, format, count, settings.cols, resources);
  set.pack(widened.data(), count, packed.origin(), meter, resources);
  std::vector<float> limits(512, -HUGE_VALF);
  std::vector<int32_t> byte_limits(512, kSmallestLimit);
  Nothing hits;
  const double seconds = bench::best_seconds(10 * settings.rounds, [&] {
    if (holds_bytes(format)) {
      scan_byte_panels(set.byte_panels(0, count, byte_limits.data()), packed.byte_panels(), 0,
                       packed.panel_count(), hits);
    } else if (format == PanelFormat::screened) {
      scan_rounded_panels(set.screen_panels(0, count, limits.data()), packed.screen_panels(), 0,
                          packed.panel_count(), hits);
    } else {
      scan_panels(set.panels(0, count, limits.data()), packed.panels(), 0, packed.panel_count(), hits);
    }
  }).wall;
  return 2.0 * static_cast<double>(rows * count * settings.cols) / seconds;
}

void run(const bench::Options& given, bench::Report& report) {
  Settings settings;
  settings.rows = given.number("--rows", settings.rows);
  settings.cols = given.number("--cols", settings.cols);
  settings.queries = given.number("--queries", settings.queries);
  settings.k = given.number("--k", settings.k);
  settings.rounds = given.number("--rounds", settings.rounds);
  const std::string wanted = given.text("--target");
  ResourceOptions options;
  options.device = Device::cpu();
  options.threads = static_cast<int>(given.number("--threads", 2));
  const Resources resources(options);

  const std::vector<float> base = mixture(settings.rows, settings.cols, 11);
  const std::vector<float> queries = mixture(settings.queries, settings.cols, 12);
  const auto bytes_of = [](const std::vector<float>& values) {
    std::vector<uint8_t> bytes(values.size());
    std::transform(values.begin(), values.end(), bytes.begin(),
                   [](float value) { return static_cast<uint8_t>(std::lround(value)); });
    return bytes;
  };
  const std::vector<uint8_t> byte_base = bytes_of(base);
  const std::vector<uint8_t> byte_queries = bytes_of(queries);
  const auto view = [&](const auto& values, DType dtype, int64_t rows) {
    return MatrixView(values.data(), dtype, {rows, settings.cols, settings.cols});
  };

  report.note(fmt::format("{} threads, {}; kernel: one thread's rate in 10^9 operations a second", options.threads,
                          cpu_info().name));
  const double operations = 2.0 * static_cast<double>(settings.queries * settings.rows * settings.cols);
  for (const std::string& target : cpu_targets()) {
    if (!wanted.empty() && target != wanted) continue;
    force_cpu_target(target);
    for (const DType dtype : {DType::f32, DType::u8}) {
      const bool bytes = dtype == DType::u8;
      const MatrixView b = bytes ? view(byte_base, dtype, settings.rows) : view(base, dtype, settings.rows);
      const MatrixView q = bytes ? view(byte_queries, dtype, settings.queries) : view(queries, dtype, settings.queries);
      const PanelFormat format =
          choose_panel_format(KeyKind::squared_l2, dtype, dtype, settings.cols, cpu_extensions());
      Index index("Flat", {Metric::sqeuclidean});
      index.add(b, Ownership::borrow, resources);
      const double indexed =
          bench::best_seconds(settings.rounds, [&] { index.search(q, {.k = settings.k}, resources); }).wall;
      const double arrays = bench::best_seconds(settings.rounds, [&] {
        knn(q, b, {settings.k, Metric::sqeuclidean}, resources);
      }).wall;
      report.row({.name = fmt::format("{} {}", target, name_of(dtype)),
                  .shape = fmt::format("{} queries in {} x {}, k = {}", settings.queries, settings.rows, settings.cols,
                                       settings.k),
                  .ms = 1e3 * indexed,
                  .runs = settings.rounds,
                  .clock = "wall",
                  .figures = {{"GOP/s", operations / indexed / 1e9},
                              {"kernel GOP/s", kernel_rate(format, q, b, settings) / 1e9},
                              {"arrays ms", 1e3 * arrays}}});
    }
  }
}

const bench::Registered known({
    .name = "product",
    .about = "products of exact search on the CPU, by format and instruction set",
    .options = {"--rows", "--cols", "--queries", "--k", "--threads", "--rounds", "--target"},
    .run = run,
});

}  // namespace
