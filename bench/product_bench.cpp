// The products of exact search on the CPU, by format and instruction set: rates of the kernels alone, without
// candidates, and of whole searches, each beside the rate of f32.
//
//   product_bench [--rows 100000] [--cols 128] [--queries 1000] [--k 10] [--threads 2] [--rounds 5] [--target AMX]
//                 [--out FILE]
#include <kith/index.hpp>
#include <kith/knn.hpp>

#include "core/cpu_target.hpp"
#include "core/float_mode.hpp"
#include "kernels/panels/packed_queries.hpp"
#include "rows/stored_row.hpp"
#include "kernels/panels/byte_product.hpp"
#include "kernels/panels/packed_rows.hpp"
#include "mixture.hpp"
#include "table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace {

using namespace kith;

struct Options {
  int64_t rows = 100000;
  int64_t cols = 128;
  int64_t queries = 1000;
  int64_t k = 10;
  int threads = 2;
  int rounds = 5;
  std::string target;  // all of them
  std::string out;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const std::string value = argv[i + 1];
    if (name == "--rows") options.rows = std::atoll(value.c_str());
    if (name == "--cols") options.cols = std::atoll(value.c_str());
    if (name == "--queries") options.queries = std::atoll(value.c_str());
    if (name == "--k") options.k = std::atoll(value.c_str());
    if (name == "--threads") options.threads = std::atoi(value.c_str());
    if (name == "--rounds") options.rounds = std::atoi(value.c_str());
    if (name == "--target") options.target = value;
    if (name == "--out") options.out = value;
  }
  return options;
}

double best_seconds(int rounds, const std::function<void()>& work) {
  double best = HUGE_VAL;
  for (int i = 0; i < rounds; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

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
double kernel_rate(PanelFormat format, const MatrixView& queries, const MatrixView& base, const Options& options) {
  const Resources resources;
  const DefaultFloatMode mode;
  const int64_t rows = std::min<int64_t>(base.rows(), 4096);
  const int64_t count = std::min<int64_t>(queries.rows(), 256);
  ProgressMeter meter("bench", 1, resources);
  PackedRows packed(KeyKind::squared_l2, format, std::vector<float>(static_cast<size_t>(options.cols)), rows,
                    resources);
  packed.pack(base.slice(0, rows), {}, meter, resources);
  std::vector<float> widened(static_cast<size_t>(count * options.cols));
  for (int64_t i = 0; i < count; ++i) widen_row(queries, i, widened.data() + i * options.cols);
  PackedQueries set(KeyKind::squared_l2, format, count, options.cols, resources);
  set.pack(widened.data(), count, packed.origin(), meter, resources);
  std::vector<float> limits(512, -HUGE_VALF);
  std::vector<int32_t> byte_limits(512, kSmallestLimit);
  Nothing hits;
  const double seconds = best_seconds(10 * options.rounds, [&] {
    if (holds_bytes(format)) {
      scan_byte_panels(set.byte_panels(0, count, byte_limits.data()), packed.byte_panels(), 0,
                       packed.panel_count(), hits);
    } else if (format == PanelFormat::screened) {
      scan_rounded_panels(set.screen_panels(0, count, limits.data()), packed.screen_panels(), 0,
                          packed.panel_count(), hits);
    } else {
      scan_panels(set.panels(0, count, limits.data()), packed.panels(), 0, packed.panel_count(), hits);
    }
  });
  return 2.0 * static_cast<double>(rows * count * options.cols) / seconds;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const Table table(options.out);
  ResourceOptions limits;
  limits.device = Device::cpu();
  limits.threads = options.threads;
  const Resources resources(limits);

  const std::vector<float> base = mixture(options.rows, options.cols, 11);
  const std::vector<float> queries = mixture(options.queries, options.cols, 12);
  const auto bytes_of = [](const std::vector<float>& values) {
    std::vector<uint8_t> bytes(values.size());
    std::transform(values.begin(), values.end(), bytes.begin(),
                   [](float value) { return static_cast<uint8_t>(std::lround(value)); });
    return bytes;
  };
  const std::vector<uint8_t> byte_base = bytes_of(base);
  const std::vector<uint8_t> byte_queries = bytes_of(queries);
  const auto view = [&](const auto& values, DType dtype, int64_t rows) {
    return MatrixView(values.data(), dtype, {rows, options.cols, options.cols});
  };

  table.line(fmt::format("{} queries in {} x {}, k = {}, {} threads, {}", options.queries, options.rows, options.cols,
                         options.k, options.threads, cpu_info().name));
  table.line(fmt::format("{:8} {:6} {:>16} {:>14} {:>14} {:>14}", "target", "data", "kernel GOP/s", "index ms",
                         "index GOP/s", "arrays ms"));
  const double operations = 2.0 * static_cast<double>(options.queries * options.rows * options.cols);
  for (const std::string& target : cpu_targets()) {
    if (!options.target.empty() && target != options.target) continue;
    force_cpu_target(target);
    for (const DType dtype : {DType::f32, DType::u8}) {
      const bool bytes = dtype == DType::u8;
      const MatrixView b = bytes ? view(byte_base, dtype, options.rows) : view(base, dtype, options.rows);
      const MatrixView q = bytes ? view(byte_queries, dtype, options.queries) : view(queries, dtype, options.queries);
      const PanelFormat format = choose_panel_format(KeyKind::squared_l2, dtype, dtype, options.cols, cpu_extensions());
      const double rate = kernel_rate(format, q, b, options);
      Index index("Flat", {Metric::sqeuclidean});
      index.add(b, Ownership::borrow, resources);
      const double indexed = best_seconds(options.rounds, [&] { index.search(q, {.k = options.k}, resources); });
      const double arrays = best_seconds(options.rounds, [&] {
        knn(q, b, {options.k, Metric::sqeuclidean}, resources);
      });
      table.line(fmt::format("{:8} {:6} {:16.0f} {:14.2f} {:14.0f} {:14.2f}", target, name_of(dtype), rate / 1e9,
                             indexed * 1e3, operations / indexed / 1e9, arrays * 1e3));
    }
  }
}
