// Recall and time of a graph index's walks: one query at a time and in batches of 100, by beam, on one thread.
//
//   kith_bench graph_walk --base FILE --queries FILE [--index FILE] [--factory Graph32] [--metric l2] [--dtype f32]
//                         [--rows N] [--count 1000] [--rounds 3] [--beams 16,32,48,64,96,128] [--width 2] [--out FILE]
//
// --index: the file is read if it exists; otherwise the index is built and saved to it, so that two builds of the
// library can be timed on one graph. `answers` is a hash of what was found. Times are of the processor, for all
// queries, the least of the rounds; beams take turns.
#include <kith/kith.hpp>

#include "driver/benchmark.hpp"
#include "driver/timing.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace kith;

constexpr int64_t kNeighbors = 10;
constexpr int64_t kBatch = 100;

double recall_of(const Neighbors& found, const Neighbors& truth, int64_t count) {
  int64_t right = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t* const ids = found.ids(i);
    for (int64_t t = 0; t < kNeighbors; ++t) {
      right += std::find(ids, ids + kNeighbors, truth.ids(i)[t]) != ids + kNeighbors ? 1 : 0;
    }
  }
  return static_cast<double>(right) / static_cast<double>(count * kNeighbors);
}

// A hash of all ids and distances, which tells whether two builds answer alike.
uint64_t hash_of(const Neighbors& found, int64_t count) {
  uint64_t hash = 0xCBF29CE484222325U;
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t n = 0; n < kNeighbors; ++n) {
      const uint64_t values[] = {static_cast<uint64_t>(found.ids(i)[n]),
                                 std::bit_cast<uint32_t>(found.distances(i)[n])};
      for (const uint64_t value : values) hash = (hash ^ value) * 0x100000001B3U;
    }
  }
  return hash;
}

struct Point {
  int64_t beam = 0;
  double recall = 0;
  uint64_t hash = 0;
  double one = HUGE_VAL;  // seconds
  double batch = HUGE_VAL;
};

std::string factory_of(const bench::Options& given) { return given.text("--factory", "Graph32"); }
std::string shape_of(const MatrixView& base) {
  return std::to_string(base.rows()) + " x " + std::to_string(base.cols());
}

Index read_or_build(const bench::Options& given, const MatrixView& base, bench::Report& report) {
  const std::string path = given.text("--index");
  if (!path.empty() && std::filesystem::exists(path)) return Index::load(path);
  IndexParams params;
  params.metric = parse_metric(given.text("--metric", "l2"));
  Index index(factory_of(given), params);
  const bench::Seconds took = bench::seconds_of([&] { index.add(base); });
  report.row({.name = factory_of(given) + ", build",
              .shape = shape_of(base),
              .ms = 1e3 * took.processor,
              .clock = "processor"});
  if (!path.empty()) index.save(path);
  return index;
}

MatrixBuffer read_rows(const bench::Options& given, const char* name, int64_t rows) {
  const RowRange range = rows > 0 ? RowRange{0, rows} : RowRange{};
  const std::string dtype = given.text("--dtype");
  if (dtype.empty()) return read_vectors(given.text(name), range);
  return read_vectors(given.text(name), range, parse_dtype(dtype));
}

void run(const bench::Options& given, bench::Report& report) {
  const MatrixBuffer base = read_rows(given, "--base", given.number("--rows", 0));
  const MatrixBuffer all = read_rows(given, "--queries", given.number("--count", 1000));
  const MatrixView queries = all.view();
  const int64_t count = queries.rows();
  const Index index = read_or_build(given, base.view(), report);
  const IndexInfo info = index.info();
  report.row({.name = factory_of(given),
              .shape = shape_of(base.view()),
              .figures = {{"lost", static_cast<double>(info.lost)},
                          {"clipped", static_cast<double>(info.clipped)},
                          {"default_beam", static_cast<double>(info.beam)}}});
  KnnParams exact;
  exact.k = kNeighbors;
  exact.metric = parse_metric(given.text("--metric", "l2"));
  const Neighbors truth = knn(queries, base.view(), exact);

  ResourceOptions options;
  options.device = Device::cpu();
  options.threads = 1;
  const Resources resources(options);
  std::vector<Point> points;
  for (const int64_t beam : given.numbers("--beams", {16, 32, 48, 64, 96, 128})) points.push_back({.beam = beam});
  Neighbors found(count, kNeighbors, resources);
  const auto search = [&](const Point& point, int64_t together) {
    SearchParams params;
    params.k = kNeighbors;
    params.beam = point.beam;
    params.width = given.number("--width", 2);
    const bench::Watch watch;
    for (int64_t i = 0; i < count; i += together) {
      const int64_t some = std::min(together, count - i);
      NeighborsView out = found.view();
      out.ids += i * kNeighbors;
      out.distances += i * kNeighbors;
      out.queries = some;
      index.search(queries.slice(i, some), out, params, resources);
    }
    return watch.seconds().processor;
  };
  const int64_t rounds = given.number("--rounds", 3);
  for (int64_t round = 0; round < rounds; ++round) {
    for (Point& point : points) {
      point.one = std::min(point.one, search(point, 1));
      point.recall = recall_of(found, truth, count);
      point.hash = hash_of(found, count);
      point.batch = std::min(point.batch, search(point, kBatch));
    }
  }
  for (const Point& point : points) {
    char answers[17];
    std::snprintf(answers, sizeof answers, "%016llx", static_cast<unsigned long long>(point.hash));
    for (const auto& [batch, seconds] : {std::pair{int64_t{1}, point.one}, std::pair{kBatch, point.batch}}) {
      report.row({.name = factory_of(given) + ", beam " + std::to_string(point.beam) + ", " +
                          (batch == 1 ? "one query at a time" : "batches of " + std::to_string(batch)),
                  .shape = shape_of(base.view()) + ", " + std::to_string(count) + " queries",
                  .ms = 1e3 * seconds,
                  .runs = rounds,
                  .clock = "processor",
                  .figures = {{"recall", point.recall}, {"us_a_query", 1e6 * seconds / static_cast<double>(count)}},
                  .labels = {{"answers", answers}}});
    }
  }
}

const bench::Registered known({
    .name = "graph_walk",
    .about = "recall and time of a graph index's walks on the CPU, by beam",
    .options = {"--base", "--queries", "--index", "--factory", "--metric", "--dtype", "--rows", "--count", "--rounds",
                "--beams", "--width"},
    .run = run,
});

}  // namespace
