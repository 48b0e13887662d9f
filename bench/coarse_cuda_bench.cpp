// How fast a GPU searches few rows for many queries: the coarse step of an index. The base is prepared in an index,
// queries and results lie on the device; the mixture of mixture.hpp, squared L2.
//
//   coarse_cuda_bench [--queries N] [--cols N] [--runs N] [--rows N] [--k N] [--stages 0|1] [--out FILE]
//
// Times are CUDA events around whole calls, the medians of the runs; behind them each kernel alone, where the coarse
// path is the one that a plan chooses: operands of the queries, the product's minima, windows, marks, re-ranking query
// by query and by tiles of rows, and which of the two a search takes. The floor is an H200's (floor.hpp): the product,
// and the k rows of every query, read from the L2 cache.
#include <kith/kith.hpp>

#include "cuda_timing.hpp"
#include "driver/benchmark.hpp"
#include "floor.hpp"
#include "mixture.hpp"

#include "kernels/matrix/operands_cuda.hpp"
#include "kernels/matrix/product_cuda.hpp"
#include "kernels/rerank/coarse_plan.hpp"
#include "kernels/rerank/rerank_cuda.hpp"
#include "kernels/matrix/knn_windows_cuda.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <string>
#include <vector>

namespace {

using namespace kith;

constexpr double kL2Bytes = 5.5e12;  // a second, read by all multiprocessors

struct Settings {
  int64_t queries = 10000;
  int64_t cols = 128;
  int64_t runs = 21;
  int64_t rows = 0;  // 0: all
  int64_t k = 0;
  bool stages = true;
};

Settings parse(const bench::Options& options) {
  Settings settings;
  settings.queries = options.number("--queries", settings.queries);
  settings.cols = options.number("--cols", settings.cols);
  settings.runs = std::max<int64_t>(1, options.number("--runs", settings.runs));
  settings.rows = options.number("--rows", settings.rows);
  settings.k = options.number("--k", settings.k);
  settings.stages = options.number("--stages", 1) != 0;
  return settings;
}

// The kernels of a coarse search of f32 vectors, one by one.
class Stages {
 public:
  Stages(const DeviceBytes& queries, int64_t query_count, const DeviceBytes& base, int64_t rows, int64_t cols,
         const StreamTimer& timer)
      : timer_(timer),
        queries_{queries.as<void>(), DType::f32, cols, query_count},
        base_{base.as<void>(), DType::f32, cols, rows},
        cols_(cols),
        chunks_(operand_chunks(cols, 2)),
        device_(cuda_devices().front()),
        query_operands_(bytes(operand_bytes(query_count, chunks_))),
        base_operands_(bytes(operand_bytes(rows, chunks_))),
        terms_(bytes(operand_tiles(rows) * kOperandTile * 4)),
        centre_(bytes(cols * 4)),
        base_bounds_(sizeof(BaseBounds)),
        query_bounds_(bytes(query_count) * sizeof(QueryOperand)),
        minima_(bytes(query_count * part_count(rows, 2) * 4)),
        thresholds_(bytes(query_count * 4)),
        key_limits_(bytes(query_count * 4)),
        marks_(bytes(query_count * mark_words(rows) * 4)),
        counts_(bytes(query_count + 1) * 4),
        failed_(bytes(query_count) * 4) {
    launch_sample(task(base_, base_operands_), timer_.stream());
    launch_base_operands(task(base_, base_operands_), {terms_.as<void>(), nullptr}, timer_.stream());
  }

  void add_to(bench::Row& row, int64_t k, int64_t runs) {
    const int each = plan_coarse(k, base_.count).rows_per_minimum;
    const cudaStream_t stream = timer_.stream();
    const ProductEngine engine = product_engine(device_.compute_capability);
    const ProductOperands operands{OperandType::half,
                                   query_operands_.as<std::byte>(),
                                   base_operands_.as<std::byte>(),
                                   terms_.as<void>(),
                                   queries_.count,
                                   base_.count,
                                   chunks_};
    const ProductSchedule schedule =
        coarse_schedule(engine, queries_.count, base_.count, device_.multiprocessors, chunks_);
    const DeviceBytes lists(bytes(queries_.count * k * 8));
    const auto time = [&](const auto& call) { return timer_.of(runs, call).median; };
    const double rounding = time([&] {
      launch_query_operands(task(queries_, query_operands_), {query_bounds_.as<QueryOperand>(), nullptr, 0}, stream);
    });
    KnnWindowTask window;
    window.kind = KeyKind::squared_l2;
    window.cols = cols_;
    window.queries = queries_.count;
    window.k = k;
    window.minima = minima_.as<float>();
    window.groups = part_count(base_.count, each);
    window.query_bounds = query_bounds_.as<QueryOperand>();
    window.base_bounds = base_bounds_.as<BaseBounds>();
    window.thresholds = thresholds_.as<float>();
    window.key_limits = key_limits_.as<uint32_t>();
    const double product = time([&] {
      if (each >= kGroupRowsPerTile) {
        launch_product<ProductMinima>(engine, operands, schedule,
                                      {minima_.as<float>(), window.groups, each / kGroupRowsPerTile}, stream);
      } else {
        launch_product<ProductParts>(engine, operands, schedule, {minima_.as<float>(), each}, stream);
      }
    });
    const double windows = time([&] { launch_kth_windows(window, stream); });
    const double marks = time([&] {
      launch_product<ProductMarks>(engine, operands, schedule, {window.thresholds, marks_.as<uint32_t>()}, stream);
    });
    RerankTask rerank;
    rerank.kind = KeyKind::squared_l2;
    rerank.queries = queries_;
    rerank.base = base_;
    rerank.cols = cols_;
    rerank.k = k;
    rerank.key_limits = window.key_limits;
    rerank.marks = marks_.as<uint32_t>();
    rerank.room = coarse_room(k, base_.count, rerank_room(cols_, most_shared_bytes(device_.compute_capability)));
    rerank.neighbors = lists.as<uint64_t>();
    const FailedQueries failed{counts_.as<uint32_t>(), failed_.as<uint32_t>()};
    const auto zero_counts = [&](int64_t count) {
      check(cudaMemsetAsync(counts_.as<void>(), 0, bytes(count) * 4, stream));
    };
    const double by_query = time([&] {
      zero_counts(1);
      launch_rerank(rerank, failed, stream);
    });
    const CoarseRerank shape{queries_.count,
                             base_.count,
                             cols_,
                             k,
                             DType::f32,
                             DType::f32,
                             rerank.room,
                             most_shared_bytes(device_.compute_capability),
                             device_.multiprocessors};
    double by_tiles = -1;
    if (can_use_row_tiles(shape)) {
      const DeviceBytes entries(bytes(queries_.count * rerank.room * 8));
      const CandidateLists candidate_lists{counts_.as<uint32_t>() + 1, entries.as<uint64_t>()};
      by_tiles = time([&] {
        zero_counts(queries_.count + 1);
        launch_rerank_tiles(rerank, shape.tiles(), candidate_lists, failed, stream);
      });
    }
    row.figures = {{"operands_ms", rounding}, {"product_ms", product},   {"windows_ms", windows},
                   {"marks_ms", marks},       {"by_query_ms", by_query}, {"rows_per_minimum", each},
                   {"candidates", candidates()}};
    if (by_tiles >= 0) row.figures.emplace_back("by_tiles_ms", by_tiles);
    row.labels.emplace_back("re_ranked_by", suits_row_tiles(shape) ? "tiles" : "query");
  }

 private:
  static size_t bytes(int64_t count) { return static_cast<size_t>(count); }

  OperandTask task(const DeviceRowsView& rows, const DeviceBytes& operands) const {
    return {rows,
            cols_,
            KeyKind::squared_l2,
            OperandType::half,
            centre_.as<float>(),
            base_bounds_.as<BaseBounds>(),
            operands.as<std::byte>()};
  }

  double candidates() const {
    std::vector<uint32_t> words(static_cast<size_t>(queries_.count * mark_words(base_.count)));
    check(cudaMemcpy(words.data(), marks_.as<void>(), words.size() * 4, cudaMemcpyDeviceToHost));
    int64_t marked = 0;
    for (const uint32_t word : words) marked += __builtin_popcount(word);
    return static_cast<double>(marked) / static_cast<double>(queries_.count);
  }

  const StreamTimer& timer_;
  DeviceRowsView queries_;
  DeviceRowsView base_;
  int64_t cols_;
  int64_t chunks_;
  DeviceInfo device_;
  DeviceBytes query_operands_;
  DeviceBytes base_operands_;
  DeviceBytes terms_;
  DeviceBytes centre_;
  DeviceBytes base_bounds_;
  DeviceBytes query_bounds_;
  DeviceBytes minima_;
  DeviceBytes thresholds_;
  DeviceBytes key_limits_;
  DeviceBytes marks_;
  DeviceBytes counts_;  // of failed queries, and of the candidates of each
  DeviceBytes failed_;
};

class Bench {
 public:
  Bench(const Settings& settings, bench::Report& report)
      : settings_(settings), report_(report), mixture_(settings.cols) {
    ResourceOptions options;
    options.device = Device::cuda(0);
    options.stream = timer_.stream();
    options.log = [this](LogLevel, std::string_view text) { log_ = text; };
    resources_ = Resources(options);
    report_.note(cuda_devices().front().name);
  }

  void run() {
    const std::vector<float> queries = mixture_.points(settings_.queries, 12);
    const DeviceBytes device_queries(queries);
    for (const int64_t rows : chosen(settings_.rows, {1024, 4096, 16384, 65536})) {
      const std::vector<float> base = mixture_.points(rows, 11);
      const DeviceBytes device_base(base);
      Index index("Flat", {.metric = Metric::sqeuclidean});
      index.add({base.data(), rows, settings_.cols}, Ownership::borrow, resources_);
      Stages stages(device_queries, settings_.queries, device_base, rows, settings_.cols, timer_);
      for (const int64_t k : chosen(settings_.k, {1, 10, 32, 100, 128, 1000})) {
        search(index, device_queries, rows, k, stages);
      }
    }
  }

 private:
  static std::vector<int64_t> chosen(int64_t one, const std::vector<int64_t>& all) {
    return one > 0 ? std::vector<int64_t>{one} : all;
  }

  void search(const Index& index, const DeviceBytes& queries, int64_t rows, int64_t k, Stages& stages) {
    const DeviceBytes ids(static_cast<size_t>(settings_.queries * k) * 8);
    const DeviceBytes distances(static_cast<size_t>(settings_.queries * k) * 4);
    const NeighborsView out{ids.as<int64_t>(), distances.as<float>(), settings_.queries, k, MemorySpace::cuda(0)};
    const MatrixView view{
        queries.as<void>(), DType::f32, {settings_.queries, settings_.cols, settings_.cols}, MemorySpace::cuda(0)};
    SearchParams params;
    params.k = k;
    const Times times = timer_.of(settings_.runs, [&] { index.search(view, out, params, resources_); });
    const double floor = product_ms(static_cast<double>(settings_.queries), static_cast<double>(rows),
                                    static_cast<double>(settings_.cols)) +
                         1e3 * static_cast<double>(settings_.queries * k * settings_.cols * 4) / kL2Bytes;
    bench::Row row{.name = std::to_string(rows) + " rows, k = " + std::to_string(k),
                   .shape = std::to_string(settings_.queries) + " queries x " + std::to_string(settings_.cols),
                   .ms = times.best,
                   .median_ms = times.median,
                   .runs = settings_.runs,
                   .clock = "cuda",
                   .floor_ms = floor};
    if (settings_.stages && rows <= kCoarseMostRows && suits_coarse(k, rows)) stages.add_to(row, k, settings_.runs);
    if (!log_.empty()) row.labels.emplace_back("log", log_);
    report_.row(row);
    log_.clear();
  }

  Settings settings_;
  bench::Report& report_;
  Mixture mixture_;
  Resources resources_;
  StreamTimer timer_;
  std::string log_;
};

const kith::bench::Registered known(
    {.name = "coarse_cuda",
     .about = "the coarse step of an index on a GPU: few rows, many queries",
     .options = {"--queries", "--cols", "--runs", "--rows", "--k", "--stages"},
     .needs_gpu = true,
     .run = [](const bench::Options& options, bench::Report& report) { Bench(parse(options), report).run(); }});

}  // namespace
