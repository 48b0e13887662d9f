// The figures and the table of GNND's paper ("Large-scale approximate k-NN graph construction on GPU") on a
// GPU.
//
//   graph_figures_cuda_bench --figure 4|5|7|2 [--rows N] [--file ROWS.u8bin] [--recall PERCENT] [--out FILE]
//
//   4   phi(G) by round, k = 10, of NN-Descent on the GPU and on the CPU, selective and all pairs
//   5   recall@10 over time of the paper's update strategies (gnnd_updates_cuda.hpp) and of Kith's, lists of 64, p = 32
//   7   merging the graphs of two halves: GGM beside exact search of the other half, by recall
//   2   Table 2's two operating points at 100M x 96, u8 and f16
//
// Rows lie on the device: the mixture, or those of the file. Figure 5 is by rounds without the recall's estimate, the
// others are whole calls; recall@10 is of 1,000 rows in Figure 5, else of 10,000.
#include <kith/kith.hpp>

#include "cuda_timing.hpp"
#include "driver/benchmark.hpp"
#include "gnnd_updates_cuda.hpp"
#include "graph_recall_cuda.hpp"
#include "mixture_halves_cuda.hpp"
#include "real_rows_cuda.hpp"
#include "recall_truth_cuda.hpp"

#include "core/parallel_for.hpp"
#include "cuda/device_buffer.hpp"
#include "cuda/device_context.hpp"
#include "graph/build/nn_descent/join_cuda.hpp"
#include "graph/build/nn_descent/nn_descent.hpp"
#include "graph/lists/graph_lists_cuda.hpp"

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace kith;
using Clock = std::chrono::steady_clock;

constexpr int64_t kLength = 64;
constexpr int64_t kSamples = 32;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// A point of a figure: where it is, and what was found there.
void put(bench::Report& report, const std::string& name, const MatrixView& x, double seconds,
         const std::vector<std::pair<std::string, double>>& figures,
         const std::vector<std::pair<std::string, std::string>>& labels) {
  report.row({.name = name,
              .shape = std::to_string(x.rows()) + " x " + std::to_string(x.cols()),
              .ms = 1e3 * seconds,
              .clock = "wall",
              .figures = figures,
              .labels = labels});
}

Resources on(Device device) {
  ResourceOptions options;
  options.device = device;
  return Resources(options);
}

KnnGraphParams descent_params(int64_t k, double recall) {
  KnnGraphParams params;
  params.k = k;
  params.method = GraphMethod::nn_descent;
  params.start = GraphStart::random;
  params.list_length = kLength;
  params.samples = kSamples;
  params.recall = recall;
  return params;
}

void figure_4(bench::Report& report, const MatrixView& x, double recall) {
  std::vector<float> values(static_cast<size_t>(x.rows() * x.cols()));
  check(cudaMemcpy(values.data(), x.data(), values.size() * 4, cudaMemcpyDeviceToHost));
  const MatrixView host(values.data(), x.rows(), x.cols());
  for (const GraphUpdate update : {GraphUpdate::selective, GraphUpdate::all}) {
    KnnGraphParams params = descent_params(10, recall);
    params.update = update;
    for (const bool gpu : {true, false}) {
      const KnnGraph graph = knn_graph(gpu ? x : host, params, on(gpu ? Device::cuda(0) : Device::cpu()));
      int64_t number = 0;
      for (const GraphRound& round : graph.report().rounds) {
        const std::string device = gpu ? "cuda" : "cpu";
        const std::string by(name_of(update));
        const std::string index = std::to_string(number++);
        put(report, "figure 4, " + device + ", " + by + ", round " + index, x, round.seconds,
            {{"phi", round.phi},
             {"recall", round.recall.value_or(0)},
             {"updates", static_cast<double>(round.updates)},
             {"comparisons", static_cast<double>(round.comparisons)}},
            {{"device", device}, {"update", by}, {"round", index}});
      }
    }
  }
}

void figure_5(bench::Report& report, const MatrixView& x, double recall) {
  const Resources resources = on(Device::cuda(0));
  const auto context = std::make_shared<const DeviceContext>(0);
  const cudaStream_t stream = context->stream();
  const RecallTruth truth(x, Metric::l2, resources);
  const PairKeyRows pairs{{x.data(), DType::f32, x.cols(), x.rows()}, x.cols(), KeyKind::l2};
  const DeviceBuffer lists(8 * x.rows() * kLength, "lists", context, resources);
  const DeviceBuffer ends(8 * x.rows(), "ends", context, resources);
  const DeviceListsRef ref{{reinterpret_cast<uint64_t*>(lists.data()), x.rows(), kLength},
                           reinterpret_cast<uint64_t*>(ends.data())};
  constexpr int64_t kMostRounds = 14;
  constexpr float kSlack = 1e-5f;  // f32 sums of the strategies
  const auto begin = [&] {
    check(cudaMemsetAsync(ref.entries, 0xFF, static_cast<size_t>(lists.bytes()), stream));
    launch_list_ends(ref, stream);
    add_random_rows_cuda(pairs, 0, 1, ref, context, resources);
  };
  // The first turn of each warms up. Kith's own begins with the random rows; the others' keys of these are computed
  // again, outside the time.
  const auto run = [&](const char* name, const auto& round) {
    double seconds = 0;
    for (int64_t number = 0; number < kMostRounds; ++number) {
      const Clock::time_point start = Clock::now();
      round(number);
      context->synchronize();
      seconds += seconds_since(start);
      const double found = truth.recall(ref, kSlack);
      const std::string index = std::to_string(number);
      put(report, std::string("figure 5, ") + name + ", round " + index, x, seconds, {{"recall@10", found}},
          {{"update", name}, {"round", index}});
      if (found >= recall) break;
    }
  };
  for (const bool all : {false, true}) {
    begin();
    const DescentRules rules{.samples = kSamples, .inbox_slots = 32, .all_pairs = all, .seed = 1};
    const auto steps = make_descent_steps_cuda(pairs, rules, ref.entries, kLength, context, resources);
    ProgressMeter meter("descend", 1, resources);
    run(all ? "Kith, all pairs" : "Kith", [&](int64_t number) {
      steps->sample(number, meter);
      steps->join(number, meter);
      steps->merge(meter);
    });
  }
  const DeviceBuffer locks(4 * gnnd::kSegments * x.rows(), "locks", context, resources);
  const DeviceBuffer samples((16 * kSamples + 4) * x.rows(), "samples", context, resources);
  check(cudaMemsetAsync(locks.data(), 0, static_cast<size_t>(locks.bytes()), stream));
  auto* const numbers = reinterpret_cast<uint32_t*>(samples.data());
  gnnd::Task task{static_cast<const float*>(static_cast<const void*>(x.data())), x.cols(), ref,
                  {numbers, numbers + 4 * kSamples * x.rows(), kSamples}, reinterpret_cast<int*>(locks.data())};
  for (const gnnd::Update update : {gnnd::Update::segment_locks, gnnd::Update::one_lock, gnnd::Update::all_pairs}) {
    begin();
    task.update = update;
    gnnd::begin(task, stream);
    context->synchronize();
    run(gnnd::name_of(update), [&](int64_t number) { gnnd::round(task, round_salt(1, number), stream); });
  }
}

// A point of figure 7.
void put_7(bench::Report& report, const MatrixView& x, const std::string& method, double wanted, double seconds,
           double found) {
  char asked[16];
  std::snprintf(asked, sizeof asked, "%.3f", wanted);
  put(report, "figure 7, " + method + ", " + asked + " asked", x, seconds, {{"recall@10", found}},
      {{"method", method}, {"recall_asked", asked}});
}

void figure_7(bench::Report& report, const MatrixView& x) {
  const Resources resources = on(Device::cuda(0));
  const int64_t half = x.rows() / 2;
  const MatrixView a = x.slice(0, half);
  const MatrixView b = x.slice(half, x.rows() - half);
  const GraphTruth truth(x, 10, resources);
  const KnnGraph of_a = knn_graph(a, descent_params(kLength / 2, 0.99), resources);
  const KnnGraph of_b = knn_graph(b, descent_params(kLength / 2, 0.99), resources);
  for (const double wanted : {0.8, 0.9, 0.95, 0.98, 0.99, 0.995}) {
    GraphMergeParams params{.recall = wanted, .samples = kSamples, .list_length = kLength};
    for (int turn = 0; turn < 2; ++turn) {
      const KnnGraph merged = merge_graphs(of_a, a, of_b, b, params, resources);
      if (turn == 0) continue;
      put_7(report, x, "GGM", wanted, merged.report().seconds, truth.recall(merged));
    }
  }
  for (const double wanted : {0.8, 0.9, 0.95, 0.98, 0.99, 0.995}) {
    const KnnGraph built = knn_graph(x, descent_params(kLength / 2, wanted), resources);
    put_7(report, x, "built anew by NN-Descent", wanted, built.report().seconds, truth.recall(built));
  }
  // Every row of a half searched exactly in the other: what GGM saves.
  for (int turn = 0; turn < 2; ++turn) {
    const Clock::time_point start = Clock::now();
    const Neighbors of_first = knn(a, b, {.k = kLength / 2}, resources);
    const Neighbors of_second = knn(b, a, {.k = kLength / 2}, resources);
    if (turn == 1) put_7(report, x, "exact search of the other half", 1, seconds_since(start), 1);
  }
}

void table_2(bench::Report& report, int64_t rows) {
  constexpr int64_t kCols = 96;
  constexpr int64_t kK = 10;
  const Resources resources = on(Device::cuda(0));
  const mixture::OnDevice mixture(kCols);
  for (const DType dtype : {DType::u8, DType::f16}) {
    const DeviceBytes data(static_cast<size_t>(rows * kCols * size_of(dtype)));
    if (dtype == DType::u8) mixture.fill(1, 0, rows, data.as<uint8_t>());
    if (dtype == DType::f16) mixture::fill_halves(mixture, rows, kCols, data.as<__half>());
    check(cudaDeviceSynchronize());
    const MatrixView x(data.as<std::byte>(), dtype, {rows, kCols, kCols}, MemorySpace::cuda(0));
    const DeviceBytes ids(static_cast<size_t>(rows * kK) * 8);
    const DeviceBytes distances(static_cast<size_t>(rows * kK) * 4);
    const NeighborsView out{ids.as<int64_t>(), distances.as<float>(), rows, kK, MemorySpace::cuda(0)};
    for (const double wanted : {0.76, 0.95}) {
      KnnGraphParams params;
      params.k = kK;
      params.recall = wanted;
      const Clock::time_point start = Clock::now();
      const GraphReport made = knn_graph(x, out, params, resources);
      check(cudaDeviceSynchronize());
      const double seconds = seconds_since(start);
      const std::string type(name_of(dtype));
      const std::string asked = wanted < 0.9 ? "0.76" : "0.95";
      put(report, "table 2, " + type + ", " + asked + " asked", x, seconds,
          {{"recall@10", GraphTruth(x, kK, resources).recall(out)},
           {"device_gib", static_cast<double>(made.peak_device_bytes) / (1 << 30)}},
          {{"dtype", type}, {"recall_asked", asked}, {"method", made.method}});
    }
  }
}

void run(const bench::Options& options, bench::Report& report) {
  const int64_t figure = options.number("--figure", 5);
  const double recall = static_cast<double>(options.number("--recall", 99)) / 100;
  if (figure == 2) {
    table_2(report, options.number("--rows", 100'000'000));
    return;
  }
  const std::string path = options.text("--file");
  const real_rows::Bytes real = path.empty() ? real_rows::Bytes{} : real_rows::read(path);
  const int64_t cols = path.empty() ? 128 : real.cols;
  const int64_t rows = options.number("--rows", path.empty() ? 1'000'000 : real.rows);
  const DeviceBytes values(static_cast<size_t>(rows * cols) * 4);
  if (path.empty()) {
    mixture::OnDevice(cols).fill(1, 0, rows, values.as<float>());
  } else {
    real_rows::fill(real, rows, values.as<float>());
  }
  const MatrixView x(values.as<float>(), DType::f32, {rows, cols, cols}, MemorySpace::cuda(0));
  if (figure == 4) figure_4(report, x, recall);
  if (figure == 5) figure_5(report, x, recall);
  if (figure == 7) figure_7(report, x);
}

const kith::bench::Registered known(
    {.name = "graph_figures_cuda",
     .about = "the figures of GNND's paper",
     .options = {"--figure", "--rows", "--file", "--recall"},
     .needs_gpu = true,
     .run = &run});

}  // namespace
