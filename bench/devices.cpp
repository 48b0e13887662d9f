// Calls shared by two parts of a CPU, of one thread each, beside one thread: processor time and wall time.
//
//   kith_bench devices [--rows 1000000] [--only WORD] [--out FILE]
//
// --only: calls whose names contain the word. Times are the least of three, in turns.
#include <kith/kith.hpp>

#include "driver/benchmark.hpp"
#include "driver/timing.hpp"
#include "rows_around_centres.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace kith;

constexpr int64_t kCols = 128;

Resources on(const char* devices, int threads) {
  ResourceOptions options;
  options.devices = parse_devices(devices);
  options.threads = threads;
  return Resources(options);
}

class Comparison {
 public:
  Comparison(std::string only, bench::Report& report) : only_(std::move(only)), report_(report) {}

  template <typename Call>
  void run(const std::string& name, const Call& call) const {
    if (name.find(only_) == std::string::npos) return;
    const Resources both[] = {on("cpu", 1), on("cpu/2", 2)};
    bench::Seconds best[] = {{HUGE_VAL, HUGE_VAL}, {HUGE_VAL, HUGE_VAL}};
    for (int turn = 0; turn < 2 * kTurns; ++turn) {
      bench::Seconds& least = best[turn % 2];
      const bench::Seconds took = bench::seconds_of([&] { call(both[turn % 2]); });
      least = {std::min(least.wall, took.wall), std::min(least.processor, took.processor)};
    }
    const auto& [one, two] = best;
    report_.row({.name = name,
                 .ms = 1e3 * two.wall,
                 .runs = kTurns,
                 .clock = "wall",
                 .peers = {{"one thread", 1e3 * one.wall}},
                 .figures = {{"one_processor_s", one.processor},
                             {"two_processor_s", two.processor},
                             {"processor_ratio", two.processor / one.processor},
                             {"wall_ratio", one.wall / two.wall}}});
  }

 private:
  static constexpr int kTurns = 3;

  const std::string only_;
  bench::Report& report_;
};

// 200,000 as "200,000".
std::string counted(int64_t number) {
  std::string text = std::to_string(number);
  for (auto at = static_cast<int64_t>(text.size()) - 3; at > 0; at -= 3) text.insert(static_cast<size_t>(at), ",");
  return text;
}

void run(const bench::Options& options, bench::Report& report) {
  const int64_t rows = options.number("--rows", 1'000'000);
  const Comparison comparison(options.text("--only"), report);
  std::mt19937 random(1);
  const std::vector<float> values = rows_around_centres(rows, kCols, random);
  const MatrixView x(values.data(), rows, kCols);
  const auto first = [&](int64_t count) { return x.slice(0, std::min(rows, count)); };
  const MatrixView fewer = first(200'000);
  const std::string few = counted(fewer.rows());
  const Resources whole = on("cpu", 2);
  report.note("two parts of one thread each (cpu/2), beside one thread; least of three, in turns");
  comparison.run("500 exact searches in " + few + " x 128",
                 [&](const Resources& r) { (void)knn(first(500), fewer, {.k = 10}, r); });
  comparison.run("exact graph of " + counted(first(16'000).rows()), [&](const Resources& r) {
    (void)knn_graph(first(16'000), {.k = 10, .method = GraphMethod::exact}, r);
  });
  comparison.run("graph of " + few + " by cells", [&](const Resources& r) {
    (void)knn_graph(fewer, {.k = 10, .method = GraphMethod::cells}, r);
  });
  comparison.run("graph of " + counted(first(100'000).rows()) + " by ggm, four shards", [&](const Resources& r) {
    (void)knn_graph(first(100'000), {.k = 10, .method = GraphMethod::ggm, .shards = 4}, r);
  });
  KMeansParams kmeans;
  kmeans.clusters = 1024;
  kmeans.iterations = 2;
  kmeans.init = KMeansInit::random;
  kmeans.tol = 0;
  comparison.run("k-means of " + counted(rows) + " to 1,024, 2 iterations",
                 [&](const Resources& r) { KMeans(kmeans).fit(x, {}, r); });
  Index index("IVF1024,PQ16");
  index.train(first(50'000), whole);
  comparison.run("add of " + few + " to IVF1024,PQ16", [&](const Resources& r) {
    Index copy = index.clone();
    copy.add(fewer, Ownership::copy, r);
  });
  index.add(x, Ownership::copy, whole);
  const SearchParams params{.k = 10, .probes = 16};
  const MatrixView queries = first(10'000);
  const std::string searches =
      counted(queries.rows()) + " searches of " + counted(rows) + " in IVF1024,PQ16, ";
  comparison.run(searches + "copies", [&](const Resources& r) { (void)index.search(queries, params, r); });
  const Index shards = index.to({parse_devices("cpu/2"), 1});
  comparison.run(searches + "shards", [&](const Resources& r) {
    (void)(r.parts() == 1 ? index : shards).search(queries, params, r);
  });
}

const bench::Registered known({
    .name = "devices",
    .about = "calls shared by two parts of a CPU, beside one thread",
    .options = {"--rows", "--only"},
    .run = run,
});

}  // namespace
