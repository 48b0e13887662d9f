// NN-Descent on a GPU round by round: what each step takes beside its floor, and the recall it leaves.
//
//   descent_cuda_bench [--rows N] [--cols N] [--data mixture|manifold] [--length N] [--samples N] [--slots N] [--rounds N]
//                      [--metric M] [--recall PERCENT] [--merge K] [--out FILE]
//
// --merge: in place of the rounds, whole calls: the graph of K neighbours of all rows by NN-Descent from random rows
// and from cells, and the merge (GGM) of the exact graphs of two halves, each to the recall. Rows and graphs lie on the
// device. Rows lie on the device; lists begin with random rows. Rounds end when the recall is reached, or at --rounds.
// Recall@10 is measured on 1,000 rows, evenly spread, searched exactly; that is not in the times. The floor of a join
// is the gather of its operands: 2 bytes a value of the samples compared, at the speed of a device copy.
#include <kith/kith.hpp>

#include "cuda_timing.hpp"
#include "driver/benchmark.hpp"
#include "manifold_rows_cuda.hpp"
#include "mixture_rows_cuda.hpp"
#include "recall_truth_cuda.hpp"

#include "core/parallel_for.hpp"
#include "cuda/device_buffer.hpp"
#include "cuda/device_context.hpp"
#include "graph/build/nn_descent/join_cuda.hpp"
#include "graph/build/nn_descent/nn_descent.hpp"
#include "graph/lists/graph_lists_cuda.hpp"
#include "kernels/distance/inspect_rows_cuda.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <vector>

namespace {

using namespace kith;
using Clock = std::chrono::steady_clock;

constexpr double kCopyBytes = 4.23e12;

double since(Clock::time_point start) { return 1e3 * std::chrono::duration<double>(Clock::now() - start).count(); }

void compare_merge(bench::Report& report_to, const MatrixView& x, Metric metric, int64_t k, int64_t length,
                   int64_t samples, double recall, const Resources& resources) {
  KnnGraphParams params;
  params.k = k;
  params.metric = metric;
  params.method = GraphMethod::exact;
  const int64_t half = x.rows() / 2;
  const MatrixView a = x.slice(0, half);
  const MatrixView b = x.slice(half, x.rows() - half);
  const KnnGraph of_a = knn_graph(a, params, resources);
  const KnnGraph of_b = knn_graph(b, params, resources);
  params.method = GraphMethod::nn_descent;
  params.recall = recall;
  params.samples = samples;
  params.list_length = length;
  const GraphMergeParams merging{.recall = recall, .samples = samples, .list_length = length};
  const auto tell = [&](const char* name, const GraphReport& report) {
    int64_t compared = 0;
    double of_rounds = 0;
    for (const GraphRound& round : report.rounds) {
      compared += round.comparisons;
      of_rounds += round.seconds;
    }
    const auto rows = static_cast<double>(x.rows());
    bench::Row row{.name = std::string("whole call, ") + name,
                   .shape = std::to_string(x.rows()) + " x " + std::to_string(x.cols()) + ", k = " + std::to_string(k),
                   .ms = 1e3 * report.seconds,
                   .clock = "wall",
                   .figures = {{"rounds_ms", 1e3 * of_rounds},
                               {"rounds", static_cast<double>(report.rounds.size())},
                               {"compared_a_row", static_cast<double>(compared) / rows},
                               {"recall", report.recall->recall},
                               {"device_bytes_a_row", static_cast<double>(report.peak_device_bytes) / rows}}};
    int number = 0;
    for (const GraphRound& round : report.rounds) {
      row.figures.emplace_back("round_" + std::to_string(number++) + "_ms", 1e3 * round.seconds);
    }
    report_to.row(row);
  };
  for (int turn = 0; turn < 2; ++turn) {  // the first one warms up
    params.start = GraphStart::random;
    const GraphReport built = knn_graph(x, params, resources).report();
    params.start = GraphStart::cells;
    const GraphReport begun = knn_graph(x, params, resources).report();
    const GraphReport merged = merge_graphs(of_a, a, of_b, b, merging, resources).report();
    if (turn == 0) continue;
    tell("NN-Descent", built);
    tell("from cells", begun);
    tell("merge of two halves", merged);
  }
}

void run(const bench::Options& options, bench::Report& report) {
  const int64_t rows = options.number("--rows", 1'000'000);
  const int64_t cols = options.number("--cols", 128);
  const int64_t length = options.number("--length", 64);
  const int64_t most = options.number("--rounds", 12);
  const double wanted = static_cast<double>(options.number("--recall", 99)) / 100;
  const std::string data = options.text("--data", "mixture");
  const Metric metric = parse_metric(options.text("--metric", "l2"));
  const DescentRules rules{
      .samples = options.number("--samples", 32), .inbox_slots = options.number("--slots", kInboxSlots), .seed = 1};

  ResourceOptions on_gpu;
  on_gpu.device = Device::cuda(0);
  const Resources resources(on_gpu);
  const auto context = std::make_shared<const DeviceContext>(0);
  const DeviceBytes values(static_cast<size_t>(rows * cols) * 4);
  if (data == "manifold") {
    manifold::OnDevice(cols).fill(1, 0, rows, values.as<float>());
  } else {
    mixture::OnDevice(cols).fill(1, 0, rows, values.as<float>());
  }
  const MatrixView x(values.as<float>(), DType::f32, {rows, cols, cols}, MemorySpace::cuda(0));
  const std::string shape = data + ", " + std::to_string(rows) + " x " + std::to_string(cols) + " f32, " +
                            std::string(name_of(metric)) + ", lists of " + std::to_string(length) + ", samples " +
                            std::to_string(rules.samples);
  report.note(cuda_devices().front().name + "; " + shape);
  if (const int64_t k = options.number("--merge", 0); k > 0) {
    compare_merge(report, x, metric, k, length, rules.samples, wanted, resources);
    return;
  }
  const RecallTruth truth(x, metric, resources);
  const DeviceBuffer norms(8 * rows, "norms", context, resources);
  PairKeyRows pairs{{x.data(), DType::f32, cols, rows}, cols, key_kind(metric)};
  if (metric == Metric::cosine) {
    auto* const inverse = reinterpret_cast<double*>(norms.data());
    launch_inspect_rows(pairs.rows, cols, {nullptr, nullptr, inverse}, context->stream());
    pairs.rows.inverse_norms = inverse;
  }

  for (int turn = 0; turn < 2; ++turn) {  // the first one warms up
    const DeviceBuffer lists(8 * rows * length, "lists", context, resources);
    const DeviceBuffer ends(8 * rows, "ends", context, resources);
    const DeviceListsRef ref{{reinterpret_cast<uint64_t*>(lists.data()), rows, length},
                             reinterpret_cast<uint64_t*>(ends.data())};
    context->synchronize();
    const Clock::time_point start = Clock::now();
    check(cudaMemsetAsync(lists.data(), 0xFF, static_cast<size_t>(lists.bytes()), context->stream()));
    launch_list_ends(ref, context->stream());
    add_random_rows_cuda(pairs, 0, 1, ref, context, resources);
    double all = since(start);
    const double begun = all;
    const Clock::time_point made = Clock::now();
    const auto steps = make_descent_steps_cuda(pairs, rules, ref.entries, length, context, resources);
    context->synchronize();
    const double prepared = since(made);
    all += prepared;
    if (turn == 1) {
      report.row({.name = "start",
                  .shape = shape,
                  .ms = begun,
                  .clock = "wall",
                  .floor_ms = 1e3 * static_cast<double>(rows * length * cols * 4) / kCopyBytes,
                  .figures = {{"operands_ms", prepared}}});
    }
    ProgressMeter meter("descend", 1, resources);
    for (int64_t round = 0; round < most; ++round) {
      const Clock::time_point a = Clock::now();
      steps->sample(round, meter);
      const double sampled = since(a);
      const Clock::time_point b = Clock::now();
      const int64_t compared = steps->join(round, meter);
      const double joined = since(b);
      const Clock::time_point c = Clock::now();
      const int64_t entered = steps->merge(meter);
      const double merged = since(c);
      all += sampled + joined + merged;
      const double recall = truth.recall(ref);
      const double floor = 1e3 * static_cast<double>(rows * 4 * rules.samples * cols * 2) / kCopyBytes;
      if (turn == 1) {
        report.row({.name = "round " + std::to_string(round),
                    .shape = shape,
                    .ms = sampled + joined + merged,
                    .clock = "wall",
                    .floor_ms = floor,
                    .figures = {{"sample_ms", sampled},
                                {"join_ms", joined},
                                {"merge_ms", merged},
                                {"compared_a_row", static_cast<double>(compared) / static_cast<double>(rows)},
                                {"entered_a_row", static_cast<double>(entered) / static_cast<double>(rows)},
                                {"recall@10", recall}}});
      }
      if (recall >= wanted) break;
    }
    if (turn == 1) {
      report.row({.name = "all rounds", .shape = shape, .ms = all, .clock = "wall"});
    }
  }
}

const kith::bench::Registered known({.name = "descent_cuda",
                                     .about = "NN-Descent on a GPU, round by round and step by step",
                                     .options = {"--rows", "--cols", "--data", "--length", "--samples", "--slots",
                                                 "--rounds", "--metric", "--recall", "--merge"},
                                     .needs_gpu = true,
                                     .run = &run});

}  // namespace
