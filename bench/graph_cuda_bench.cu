// How fast a k-NN graph is built on a GPU, and how good it is: the mixture of mixture.hpp and a manifold, which is hard
// for cells, made on the device; by the method that is chosen, or by one that is named.
//
//   graph_cuda_bench [--only NAME] [--runs N] [--method auto|exact|cells|nn_descent] [--rows N] [--k N] [--recall PERCENT]
//                    [--rounds 1] [--file FILE] [--out FILE]
//
// --file: rows of bytes (.u8bin) in the place of the others, as f32 and as bytes; --rows takes the first so many, or
// adds seeded blends of them where the file has fewer (real_rows_cuda.hpp). Rows and results are on the device. Times
// are those of whole calls by a clock, the check for NaN, the control rows and their exact search included: the best of
// the runs after one that does not count. Recall is that of the k neighbours of 10,000 rows, searched exactly. The
// floor is one product of every row with the centres of the cells and with the rows of the cells that it is compared
// with, at the rate that a large product reaches on an H200.
#include <kith/kith.hpp>

#include "cuda_timing.hpp"
#include "driver/benchmark.hpp"
#include "floor.hpp"
#include "graph_recall_cuda.hpp"
#include "manifold_rows_cuda.hpp"
#include "mixture_halves_cuda.hpp"
#include "real_rows_cuda.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace kith;

struct Case {
  const char* name;
  bool manifold;
  DType dtype;
  int64_t rows;
  int64_t cols;
  double recall;
};

constexpr Case kCases[] = {
    {"mixture 100K", false, DType::f32, 100000, 128, 0.99},
    {"manifold 100K", true, DType::f32, 100000, 128, 0.99},
    {"mixture 1M", false, DType::f32, 1000000, 128, 0.99},
    {"manifold 1M", true, DType::f32, 1000000, 128, 0.99},
    {"mixture 10M", false, DType::f32, 10000000, 128, 0.99},
    {"manifold 10M", true, DType::f32, 10000000, 128, 0.99},
    {"u8 mixture 100M", false, DType::u8, 100000000, 96, 0.95},
    {"f16 mixture 100M", false, DType::f16, 100000000, 96, 0.95},
};

void fill_rows(const Case& one, int64_t rows, const DeviceBytes& data) {
  if (one.manifold) return manifold::OnDevice(one.cols).fill(1, 0, rows, data.as<float>());
  const mixture::OnDevice mixture(one.cols);
  if (one.dtype == DType::f32) mixture.fill(1, 0, rows, data.as<float>());
  if (one.dtype == DType::u8) mixture.fill(1, 0, rows, data.as<uint8_t>());
  if (one.dtype == DType::f16) mixture::fill_halves(mixture, rows, one.cols, data.as<__half>());
  check(cudaDeviceSynchronize());
}

int64_t parameter(const GraphReport& report, const std::string& name) {
  for (const GraphParameter& one : report.parameters) {
    if (one.name == name && std::holds_alternative<int64_t>(one.value)) return std::get<int64_t>(one.value);
  }
  return 0;
}

void run_case(const Case& one, const bench::Options& options, bench::Report& report_to,
              const real_rows::Bytes& given = {}) {
  const int64_t rows = options.number("--rows", one.rows);
  const DeviceBytes data(static_cast<size_t>(rows * one.cols * size_of(one.dtype)));
  if (given.rows == 0) {
    fill_rows(one, rows, data);
  } else if (one.dtype == DType::u8) {
    real_rows::fill(given, rows, data.as<uint8_t>());
  } else {
    real_rows::fill(given, rows, data.as<float>());
  }
  const MatrixView x(data.as<std::byte>(), one.dtype, {rows, one.cols, one.cols}, MemorySpace::cuda(0));
  KnnGraphParams params;
  params.k = options.number("--k", 10);
  params.method = parse_graph_method(options.text("--method", "auto"));
  params.recall = static_cast<double>(options.number("--recall", static_cast<int64_t>(one.recall * 100))) / 100;
  const DeviceBytes ids(static_cast<size_t>(rows * params.k) * 8);
  const DeviceBytes distances(static_cast<size_t>(rows * params.k) * 4);
  const NeighborsView out{ids.as<int64_t>(), distances.as<float>(), rows, params.k, MemorySpace::cuda(0)};
  const Resources resources;
  double best = 1e30;
  GraphReport report;
  const int64_t runs = options.number("--runs", rows > 20000000 ? 1 : 3);
  for (int64_t run = 0; run <= runs; ++run) {
    if (run == 0 && rows > 20000000) continue;
    const auto start = std::chrono::steady_clock::now();
    report = knn_graph(x, out, params, resources);
    check(cudaDeviceSynchronize());
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (run > 0 || rows > 20000000) best = std::min(best, seconds);
  }
  const double recall = GraphTruth(x, params.k, resources).recall(out);
  double comparisons = 0;
  for (const GraphRound& round : report.rounds) comparisons += static_cast<double>(round.comparisons);
  const auto cells = static_cast<double>(parameter(report, "cells"));
  const double rate = one.dtype == DType::u8 ? kByteFlops : kHalfFlops;
  const double floor =
      report.method == "exact"
          ? product_ms(static_cast<double>(rows), static_cast<double>(rows), static_cast<double>(one.cols), rate)
          : product_ms(static_cast<double>(rows), std::min(cells, 16384.0), static_cast<double>(one.cols)) +
                2e3 * comparisons * static_cast<double>(one.cols) / rate;
  const std::string name = std::string(one.name) + ", " + options.text("--method", "auto");
  const std::string shape =
      std::to_string(rows) + " x " + std::to_string(one.cols) + ", k = " + std::to_string(params.k);
  report_to.row({.name = name,
                 .shape = shape,
                 .ms = 1e3 * best,
                 .runs = runs,
                 .clock = "wall",
                 .floor_ms = floor,
                 .figures = {{"recall", recall},
                             {"estimate", report.recall ? report.recall->recall : 1.0},
                             {"cells", cells},
                             {"probes", static_cast<double>(parameter(report, "probes"))},
                             {"device_gib", static_cast<double>(report.peak_device_bytes) / (1 << 30)}},
                 .labels = {{"took", report.method}}});
  if (options.number("--rounds", 0) == 0) return;
  int number = 0;
  for (const GraphRound& round : report.rounds) {
    report_to.row({.name = name + ", round " + std::to_string(number++),
                   .shape = shape,
                   .ms = 1e3 * round.seconds,
                   .clock = "wall",
                   .figures = {{"recall", round.recall.value_or(0)},
                               {"updates", static_cast<double>(round.updates)},
                               {"comparisons", static_cast<double>(round.comparisons)}}});
  }
}

void run(const bench::Options& options, bench::Report& report) {
  report.note(cuda_devices().front().name +
              "; estimate: the recall that the report says; device_gib: the most that Kith had");
  const std::string only = options.text("--only");
  const std::string path = options.text("--file");
  if (!path.empty()) {
    const real_rows::Bytes real = real_rows::read(path);
    run_case({"file", false, DType::f32, real.rows, real.cols, 0.99}, options, report, real);
    run_case({"file u8", false, DType::u8, real.rows, real.cols, 0.99}, options, report, real);
    return;
  }
  for (const Case& one : kCases) {
    if (only.empty() ? one.rows <= 10000000 : std::string(one.name).find(only) != std::string::npos) {
      run_case(one, options, report);
    }
  }
}

const kith::bench::Registered known(
    {.name = "graph_cuda",
     .about = "k-NN graphs on a GPU: time and recall",
     .options = {"--only", "--runs", "--method", "--rows", "--k", "--recall", "--rounds", "--file"},
     .needs_gpu = true,
     .run = &run});

}  // namespace
