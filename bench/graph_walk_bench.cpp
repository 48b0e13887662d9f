// Recall and time of a graph index's walks: one query at a time and in batches of 100, by beam, on one thread.
//
//   graph_walk_bench --base FILE --queries FILE [--index FILE] [--factory Graph32] [--metric l2] [--dtype f32]
//                    [--rows N] [--count 1000] [--rounds 3] [--beams 16,32,48,64,96,128] [--width 2]
//
// --index: is read where it is there, else the index is built and written to it, so that two builds of the library can
// be timed on one graph; the last column is a hash of their answers. Times are of the processor, the least of the
// rounds; beams take turns.
#include <kith/kith.hpp>

#include "driver/options.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <exception>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

namespace {

using namespace kith;

constexpr int64_t kNeighbors = 10;
constexpr int64_t kBatch = 100;

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

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
  double one = 1e9;
  double batch = 1e9;
};

Index read_or_build(const bench::Options& given, const MatrixView& base) {
  const std::string path = given.text("--index");
  if (!path.empty() && std::filesystem::exists(path)) return Index::load(path);
  IndexParams params;
  params.metric = parse_metric(given.text("--metric", "l2"));
  Index index(given.text("--factory", "Graph32"), params);
  const double start = processor_seconds();
  index.add(base);
  std::printf("built in %.1f processor s\n", processor_seconds() - start);
  if (!path.empty()) index.save(path);
  return index;
}

MatrixBuffer read_rows(const bench::Options& given, const char* name, int64_t rows) {
  const RowRange range = rows > 0 ? RowRange{0, rows} : RowRange{};
  const std::string dtype = given.text("--dtype");
  if (dtype.empty()) return read_vectors(given.text(name), range);
  return read_vectors(given.text(name), range, parse_dtype(dtype));
}

void run(const bench::Options& given) {
  const MatrixBuffer base = read_rows(given, "--base", given.number("--rows", 0));
  const MatrixBuffer all = read_rows(given, "--queries", given.number("--count", 1000));
  const MatrixView queries = all.view();
  const int64_t count = queries.rows();
  const Index index = read_or_build(given, base.view());
  const IndexInfo info = index.info();
  std::printf("%s, %lld rows, lost %lld, clipped %lld, default beam %lld\n", given.text("--factory", "Graph32").c_str(),
              static_cast<long long>(base.rows()), static_cast<long long>(info.lost),
              static_cast<long long>(info.clipped), static_cast<long long>(info.beam));
  KnnParams exact;
  exact.k = kNeighbors;
  exact.metric = parse_metric(given.text("--metric", "l2"));
  const Neighbors truth = knn(queries, base.view(), exact);

  ResourceOptions options;
  options.device = Device::cpu();
  options.threads = 1;
  const Resources resources(options);
  std::vector<Point> points;
  std::stringstream beams(given.text("--beams", "16,32,48,64,96,128"));
  for (std::string beam; std::getline(beams, beam, ',');) points.push_back({.beam = std::stoll(beam)});
  Neighbors found(count, kNeighbors, resources);
  const auto search = [&](Point& point, int64_t together) {
    SearchParams params;
    params.k = kNeighbors;
    params.beam = point.beam;
    params.width = given.number("--width", 2);
    const double start = processor_seconds();
    for (int64_t i = 0; i < count; i += together) {
      const int64_t some = std::min(together, count - i);
      NeighborsView out = found.view();
      out.ids += i * kNeighbors;
      out.distances += i * kNeighbors;
      out.queries = some;
      index.search(queries.slice(i, some), out, params, resources);
    }
    return (processor_seconds() - start) * 1e6 / static_cast<double>(count);
  };
  for (int64_t round = 0; round < given.number("--rounds", 3); ++round) {
    for (Point& point : points) {
      point.one = std::min(point.one, search(point, 1));
      point.recall = recall_of(found, truth, count);
      point.hash = hash_of(found, count);
      point.batch = std::min(point.batch, search(point, kBatch));
    }
  }
  for (const Point& point : points) {
    std::printf("beam %4lld  recall %.4f  one %6.1f us  batch %6.1f us  %016llx\n", static_cast<long long>(point.beam),
                point.recall, point.one, point.batch, static_cast<unsigned long long>(point.hash));
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run({{argv + 1, argv + argc},
         {"--base", "--queries", "--index", "--factory", "--metric", "--dtype", "--rows", "--count", "--rounds",
          "--beams", "--width"}});
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "graph_walk_bench: %s\n", error.what());
    return 1;
  }
}
