// Parts of one GPU beside the whole: the wall time of calls that parts share, over that of one device, where 1.0 is the
// best there is. Rows are f32, the mixture of mixture_rows_cuda.hpp; results are compared bit by bit.
//
//   devices_cuda_bench [--parts 4] [--rows 1000000] [--many-rows 10000000] [--runs 3] [--only WORD] [--out FILE]
//
// Times are the least of the runs, after one that does not count; of graphs and searches of many rows too.
#include <kith/kith.hpp>

#include "driver/benchmark.hpp"
#include "mixture_rows_cuda.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

namespace {

using namespace kith;

constexpr int64_t kCols = 128;
constexpr int64_t kQueries = 10000;

struct Settings {
  int64_t parts = 4;
  int64_t rows = 1'000'000;
  int64_t many_rows = 10'000'000;
  int64_t runs = 3;
  std::string only;
};

Settings parse(const bench::Options& options) {
  Settings settings;
  settings.parts = options.number("--parts", settings.parts);
  settings.rows = options.number("--rows", settings.rows);
  settings.many_rows = options.number("--many-rows", settings.many_rows);
  settings.runs = std::max<int64_t>(1, options.number("--runs", settings.runs));
  settings.only = options.text("--only");
  return settings;
}

Resources on(const std::string& devices) {
  ResourceOptions options;
  options.devices = parse_devices(devices);
  return Resources(options);
}

// Neighbours in the GPU's memory.
class Found {
 public:
  Found(int64_t rows, int64_t k)
      : ids_(static_cast<size_t>(rows * k) * 8),
        distances_(static_cast<size_t>(rows * k) * 4),
        view_{ids_.as<int64_t>(), distances_.as<float>(), rows, k, MemorySpace::cuda(0)} {}

  const NeighborsView& view() const { return view_; }
  // A hash of all bytes.
  uint64_t hash() const { return hash_of(ids_, 8) * 31 + hash_of(distances_, 4); }

 private:
  uint64_t hash_of(const DeviceBytes& bytes, int64_t size) const {
    std::vector<uint32_t> words(static_cast<size_t>(view_.queries * view_.k * size / 4));
    check(cudaMemcpy(words.data(), bytes.as<void>(), words.size() * 4, cudaMemcpyDeviceToHost));
    uint64_t hash = 1469598103934665603u;
    for (const uint32_t word : words) hash = (hash ^ word) * 1099511628211u;
    return hash;
  }

  DeviceBytes ids_;
  DeviceBytes distances_;
  NeighborsView view_;
};

class Comparison {
 public:
  Comparison(const Settings& settings, bench::Report& report)
      : settings_(settings),
        report_(report),
        whole_(on("cuda:0")),
        parts_(on("cuda:0/" + std::to_string(settings.parts))) {}

  const Resources& whole() const { return whole_; }
  const Resources& parts() const { return parts_; }

  // call(resources) on the whole and on the parts; hash() of what it has made must be the same.
  template <typename Call, typename Hash>
  void run(const std::string& name, const Call& call, const Hash& hash) const {
    if (!wants(name)) return;
    const double one = milliseconds(whole_, call);
    const uint64_t expected = hash();
    const double several = milliseconds(parts_, call);
    report_.row({.name = shape_ + ", " + name,
                 .shape = shape_,
                 .ms = several,
                 .runs = settings_.runs,
                 .clock = "wall",
                 .peers = {{"one device", one}},
                 .figures = {{"over_one", several / one}, {"parts", static_cast<double>(settings_.parts)}},
                 .labels = {{"results", hash() == expected ? bench::kSameBytes : bench::kOtherBytes}}});
  }
  // A call that no parts share.
  void add(const std::string& name, double milliseconds) const {
    report_.row(
        {.name = shape_ + ", " + name, .shape = shape_, .ms = milliseconds, .runs = settings_.runs, .clock = "wall"});
  }
  // The rows that the next calls work on.
  void set_rows(int64_t rows) { shape_ = std::to_string(rows) + " x " + std::to_string(kCols); }

  bool wants(const std::string& name) const { return name.find(settings_.only) != std::string::npos; }
  template <typename Call>
  double milliseconds(const Resources& resources, const Call& call) const {
    double best = 1e30;
    for (int64_t i = 0; i <= settings_.runs; ++i) {
      const auto began = std::chrono::steady_clock::now();
      call(resources);
      check(cudaDeviceSynchronize());
      const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began;
      if (i > 0) best = std::min(best, took.count());
    }
    return best;
  }

 private:
  const Settings settings_;
  bench::Report& report_;
  std::string shape_;
  const Resources whole_;
  const Resources parts_;
};

void measure_rows(const Comparison& comparison, const Settings& settings, const MatrixView& x, const MatrixView& q) {
  std::vector<float> values(static_cast<size_t>(x.rows() * kCols));
  check(cudaMemcpy(values.data(), x.data(), values.size() * 4, cudaMemcpyDeviceToHost));
  const MatrixView host(values.data(), x.rows(), kCols);
  const Found found(kQueries, 10);
  const auto found_hash = [&] { return found.hash(); };
  const auto search = [&](const MatrixView& base) {
    return [&](const Resources& r) { knn(q, base, found.view(), {.k = 10}, r); };
  };
  comparison.run("10,000 exact searches, rows on the host", search(host), found_hash);
  comparison.run("10,000 exact searches, rows on the device", search(x), found_hash);

  KMeansParams kmeans;
  kmeans.clusters = 4096;
  kmeans.iterations = 10;
  kmeans.init = KMeansInit::random;
  kmeans.tol = 0;
  uint64_t centres = 0;
  comparison.run(
      "k-means to 4,096, 10 iterations, device",
      [&](const Resources& r) {
        KMeans model(kmeans);
        model.fit(x, {}, r);
        std::vector<uint32_t> words(4096 * kCols);
        check(cudaMemcpy(words.data(), model.snapshot().centres.data(), words.size() * 4, cudaMemcpyDefault));
        centres = 1469598103934665603u;
        for (const uint32_t word : words) centres = (centres ^ word) * 1099511628211u;
      },
      [&] { return centres; });

  const Found graph(x.rows(), 10);
  const auto graph_hash = [&] { return graph.hash(); };
  const auto build = [&](const MatrixView& rows, GraphMethod method) {
    return [&, rows, method](const Resources& r) {
      KnnGraphParams params{.k = 10, .method = method};
      if (method == GraphMethod::ggm) params.shards = settings.parts;
      NeighborsView out = graph.view();
      out.queries = rows.rows();
      (void)knn_graph(rows, out, params, r);
    };
  };
  comparison.run("graph by cells, rows on the host", build(host, GraphMethod::cells), graph_hash);
  comparison.run("graph by cells, rows on the device", build(x, GraphMethod::cells), graph_hash);
  comparison.run("graph by ggm, a shard a part, device", build(x, GraphMethod::ggm), graph_hash);
  comparison.run("exact graph of 100,000, device",
                 build(x.slice(0, std::min<int64_t>(x.rows(), 100000)), GraphMethod::exact), graph_hash);
}

void measure_many(const Comparison& comparison, const Settings& settings, const MatrixView& x, const MatrixView& q) {
  {
    const Found graph(x.rows(), 10);
    comparison.run(
        "graph of many rows by cells, device",
        [&](const Resources& r) { (void)knn_graph(x, graph.view(), {.k = 10, .method = GraphMethod::cells}, r); },
        [&] { return graph.hash(); });
  }
  if (!comparison.wants("10,000 searches")) return;
  std::vector<float> values(static_cast<size_t>(q.rows() * kCols));
  check(cudaMemcpy(values.data(), q.data(), values.size() * 4, cudaMemcpyDeviceToHost));
  const MatrixView queries(values.data(), q.rows(), kCols);
  Neighbors found(kQueries, 10, comparison.whole());
  const SearchParams params{.k = 10, .probes = 32};
  Index index("IVF4096,PQ16");
  index.train(x.slice(0, std::min<int64_t>(300000, x.rows())), comparison.whole());
  // One shard alone says what shards cost beside joining.
  const int64_t piece = x.rows() / settings.parts;
  for (int64_t first = 0; first < x.rows(); first += piece) {
    index.add(x.slice(first, std::min(piece, x.rows() - first)), Ownership::copy, comparison.whole());
    if (first > 0) continue;
    comparison.add("10,000 searches of the first shard alone",
                   comparison.milliseconds(comparison.whole(), [&](const Resources& r) {
                     index.search(queries, found.view(), params, r);
                   }));
  }
  for (const int64_t copies : {settings.parts, int64_t{1}}) {
    const Index placed = index.to({comparison.parts().devices(), static_cast<int>(copies)});
    comparison.run(
        "10,000 searches of IVF4096,PQ16, " + std::to_string(copies) + (copies == 1 ? " copy" : " copies"),
        [&](const Resources& r) {
          if (r.parts() == 1) {
            index.search(queries, found.view(), params, r);
          } else {
            placed.search(queries, found.view(), params);
          }
        },
        [&] {
          uint64_t hash = 0;
          for (int64_t i = 0; i < kQueries * 10; ++i)
            hash = hash * 1099511628211u + static_cast<uint64_t>(found.ids()[i]);
          return hash;
        });
  }
}

void run(const Settings& settings, bench::Report& report) {
  const mixture::OnDevice rows(kCols);
  Comparison comparison(settings, report);
  const int64_t most = std::max(settings.rows, settings.many_rows);
  const DeviceBytes made(static_cast<size_t>(most * kCols) * 4);
  const DeviceBytes asked(static_cast<size_t>(kQueries * kCols) * 4);
  rows.fill(1, 0, most, made.as<float>());
  rows.fill(2, 0, kQueries, asked.as<float>());
  const MatrixView x(made.as<float>(), DType::f32, {most, kCols, kCols}, MemorySpace::cuda(0));
  const MatrixView q(asked.as<float>(), DType::f32, {kQueries, kCols, kCols}, MemorySpace::cuda(0));
  if (settings.rows > 0) {
    comparison.set_rows(settings.rows);
    measure_rows(comparison, settings, x.slice(0, settings.rows), q);
  }
  if (settings.many_rows > 0) {
    comparison.set_rows(settings.many_rows);
    measure_many(comparison, settings, x.slice(0, settings.many_rows), q);
  }
}

const kith::bench::Registered known(
    {.name = "devices_cuda",
     .about = "calls shared by parts of one GPU, beside the whole",
     .options = {"--parts", "--rows", "--many-rows", "--runs", "--only"},
     .needs_gpu = true,
     .run = [](const bench::Options& options, bench::Report& report) { run(parse(options), report); }});

}  // namespace
