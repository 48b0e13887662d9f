// How fast exact search is on a GPU, with data, queries and results in its memory: the mixture of mixture.hpp, squared
// L2, beside the floor of the hardware and what other libraries take.
//
//   exact_cuda_bench [--rows N] [--queries N] [--cols N] [--runs N] [--only NAME] [--graph 0|1] [--out FILE]
//
// Times are CUDA events around whole calls, from raw arrays unless the name says "index": the medians of the runs. The
// floor is an H200's (floor.hpp): the matrix product, and behind it one read of every query's k rows, whose distances
// are computed anew; or one read of the base for one query, or its copy from the host.
#include <kith/kith.hpp>

#include "cuda_timing.hpp"
#include "driver/benchmark.hpp"
#include "floor.hpp"
#include "mixture.hpp"
#include "peers.hpp"

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

namespace {

using namespace kith;

struct Settings {
  int64_t rows = 1000000;
  int64_t queries = 10000;
  int64_t cols = 128;
  int64_t runs = 7;
  bool graph = true;
  std::string only;
};

Settings parse(const bench::Options& options) {
  Settings settings;
  settings.rows = options.number("--rows", settings.rows);
  settings.queries = options.number("--queries", settings.queries);
  settings.cols = options.number("--cols", settings.cols);
  settings.graph = options.number("--graph", settings.graph ? 1 : 0) != 0;
  settings.only = options.text("--only");
  settings.runs = std::max<int64_t>(1, options.number("--runs", settings.runs));
  return settings;
}

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
    const std::vector<float> base = mixture_.points(settings_.rows, 11);
    const std::vector<float> queries = mixture_.points(settings_.queries, 12);
    floats("", base, queries, {10, 100, 1000, 2048, 4096, 8192});
    from_host(base, queries);
    cosine(base, queries);
    if (wanted("f32 far mean k=10")) {
      const auto moved = [](std::vector<float> values) {
        for (float& value : values) value = 1e5f + value;
        return values;
      };
      floats(" far mean", moved(base), moved(queries), {10});
    }
    if (wanted("f32 outlier k=10")) {
      std::vector<float> with_outlier = base;  // which widens the bounds of all
      for (int64_t c = 0; c < settings_.cols; ++c) with_outlier[static_cast<size_t>(777 * settings_.cols + c)] *= 100;
      floats(" outlier", with_outlier, queries, {10});
    }
    halves(base, queries);
    one_query(base, queries);
    bytes(base, queries);
  }

 private:
  bool wanted(const std::string& name) const { return settings_.only.empty() || name == settings_.only; }

  void measure(const std::string& name, double floor, const std::function<void()>& call) {
    if (!wanted(name)) return;
    const Times times = timer_.of(settings_.runs, call);
    bench::Row row{.name = name,
                   .shape = std::to_string(settings_.queries) + " queries in " + std::to_string(settings_.rows) +
                            " x " + std::to_string(settings_.cols),
                   .ms = times.best,
                   .median_ms = times.median,
                   .runs = settings_.runs,
                   .clock = "cuda",
                   .floor_ms = floor};
    peers_.of(name).add_to(row);
    if (!log_.empty()) row.labels.emplace_back("log", log_);
    report_.row(row);
    log_.clear();
  }

  // Each query's k rows are read for it alone: as if none were still in the cache from another's.
  double search_floor(int64_t queries, int64_t k, DType dtype) const {
    const double product =
        product_ms(static_cast<double>(queries), static_cast<double>(settings_.rows),
                   static_cast<double>(settings_.cols), size_of(dtype) == 1 ? kByteFlops : kHalfFlops);
    return product + read_ms(static_cast<double>(queries * k * settings_.cols * size_of(dtype)));
  }

  MatrixView on_device(const DeviceBytes& array, DType dtype, int64_t rows) const {
    return {array.as<void>(), dtype, {rows, settings_.cols, settings_.cols}, MemorySpace::cuda(0)};
  }

  void search(const std::string& name, const MatrixView& queries, const MatrixView& base, const KnnParams& params) {
    const DeviceBytes ids(static_cast<size_t>(queries.rows() * params.k) * 8);
    const DeviceBytes distances(static_cast<size_t>(queries.rows() * params.k) * 4);
    const NeighborsView out{ids.as<int64_t>(), distances.as<float>(), queries.rows(), params.k, MemorySpace::cuda(0)};
    measure(name, search_floor(queries.rows(), params.k, base.dtype()),
            [&] { knn(queries, base, out, params, resources_); });
  }

  void graph(const std::string& name, const MatrixView& rows) {
    const KnnGraphParams params{.k = 10, .metric = Metric::sqeuclidean, .method = GraphMethod::exact};
    const DeviceBytes ids(static_cast<size_t>(rows.rows() * params.k) * 8);
    const DeviceBytes distances(static_cast<size_t>(rows.rows() * params.k) * 4);
    const NeighborsView out{ids.as<int64_t>(), distances.as<float>(), rows.rows(), params.k, MemorySpace::cuda(0)};
    measure(name, search_floor(rows.rows(), params.k, rows.dtype()), [&] { knn_graph(rows, out, params, resources_); });
  }

  void floats(const std::string& what, const std::vector<float>& base, const std::vector<float>& queries,
              const std::vector<int64_t>& ks) {
    const DeviceBytes device_base(base);
    const DeviceBytes device_queries(queries);
    const MatrixView base_view = on_device(device_base, DType::f32, settings_.rows);
    const MatrixView query_view = on_device(device_queries, DType::f32, settings_.queries);
    for (const int64_t k : ks) {
      search("f32" + what + " k=" + std::to_string(k), query_view, base_view, {.k = k, .metric = Metric::sqeuclidean});
    }
    if (!what.empty() || !settings_.graph) return;
    graph("f32 graph k=10", base_view);
    measure("f32 graph k=10 to host", search_floor(settings_.rows, 10, DType::f32), [&] {
      Neighbors found(settings_.rows, 10, resources_);
      knn_graph(base_view, found.view(), {.k = 10, .metric = Metric::sqeuclidean, .method = GraphMethod::exact},
                resources_);
    });
  }

  // All of it in ordinary host memory: the floor is the copy.
  void from_host(const std::vector<float>& base, const std::vector<float>& queries) {
    const double floor = copy_ms(static_cast<double>(base.size() * sizeof(float)));
    measure("f32 k=10 from host", floor, [&] {
      knn({queries.data(), settings_.queries, settings_.cols}, {base.data(), settings_.rows, settings_.cols},
          {.k = 10, .metric = Metric::sqeuclidean}, resources_);
    });
  }

  void cosine(const std::vector<float>& base, const std::vector<float>& queries) {
    const DeviceBytes device_base(base);
    const DeviceBytes device_queries(queries);
    search("f32 cosine k=10", on_device(device_queries, DType::f32, settings_.queries),
           on_device(device_base, DType::f32, settings_.rows), {.k = 10, .metric = Metric::cosine});
  }

  void halves(const std::vector<float>& base, const std::vector<float>& queries) {
    const auto rounded = [](const std::vector<float>& values) {
      std::vector<__half> halves(values.size());
      std::transform(values.begin(), values.end(), halves.begin(), [](float value) { return __float2half(value); });
      return halves;
    };
    const DeviceBytes device_base(rounded(base));
    const DeviceBytes device_queries(rounded(queries));
    search("f16 k=10", on_device(device_queries, DType::f16, settings_.queries),
           on_device(device_base, DType::f16, settings_.rows), {.k = 10, .metric = Metric::sqeuclidean});
  }

  void bytes(const std::vector<float>& base, const std::vector<float>& queries) {
    const auto rounded = [](const std::vector<float>& values) {
      std::vector<uint8_t> bytes(values.size());
      std::transform(values.begin(), values.end(), bytes.begin(),
                     [](float value) { return static_cast<uint8_t>(std::clamp(std::round(value), 0.0f, 255.0f)); });
      return bytes;
    };
    const DeviceBytes device_base(rounded(base));
    const DeviceBytes device_queries(rounded(queries));
    const MatrixView base_view = on_device(device_base, DType::u8, settings_.rows);
    const MatrixView query_view = on_device(device_queries, DType::u8, settings_.queries);
    for (const int64_t k : {10, 100, 1000, 2048, 4096}) {
      search("u8 k=" + std::to_string(k), query_view, base_view, {.k = k, .metric = Metric::sqeuclidean});
    }
    if (!settings_.graph) return;
    graph("u8 graph k=10", base_view);
  }

  void one_query(const std::vector<float>& base, const std::vector<float>& queries) {
    if (!wanted("f32 1 query index")) return;
    Index index("Flat", {.metric = Metric::sqeuclidean});
    index.add({base.data(), settings_.rows, settings_.cols}, Ownership::borrow, resources_);
    const DeviceBytes device_queries(queries);
    const DeviceBytes ids(10 * 8);
    const DeviceBytes distances(10 * 4);
    const NeighborsView out{ids.as<int64_t>(), distances.as<float>(), 1, 10, MemorySpace::cuda(0)};
    const double read = read_ms(static_cast<double>(settings_.rows * settings_.cols) * 2);
    measure("f32 1 query index", read,
            [&] { index.search(on_device(device_queries, DType::f32, 1), out, {}, resources_); });
  }

  Settings settings_;
  bench::Report& report_;
  Mixture mixture_;
  Resources resources_;
  StreamTimer timer_;
  Peers peers_{"exact"};
  std::string log_;
};



const kith::bench::Registered known(
    {.name = "exact_cuda",
     .about = "exact search on a GPU, beside the floor and other libraries",
     .options = {"--rows", "--queries", "--cols", "--runs", "--graph", "--only"},
     .needs_gpu = true,
     .run = [](const bench::Options& options, bench::Report& report) { Bench(parse(options), report).run(); }});

}  // namespace
