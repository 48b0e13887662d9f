// Two parts of a CPU, of one thread each, against one thread: processor time and wall time of calls that parts share.
//
//   devices_bench
#include <kith/kith.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <random>
#include <vector>

namespace {

using namespace kith;

double processor_seconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}
double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Resources on(const char* devices, int threads) {
  ResourceOptions options;
  options.devices = parse_devices(devices);
  options.threads = threads;
  return Resources(options);
}

struct Times {
  double processor = 1e9;
  double wall = 1e9;
};

// The least of three, in turns.
template <typename Call>
void compare(const char* name, const Call& call) {
  const Resources both[] = {on("cpu", 1), on("cpu/2", 2)};
  Times best[2];
  for (int turn = 0; turn < 6; ++turn) {
    const double processor = processor_seconds();
    const double wall = wall_seconds();
    call(both[turn % 2]);
    best[turn % 2].processor = std::min(best[turn % 2].processor, processor_seconds() - processor);
    best[turn % 2].wall = std::min(best[turn % 2].wall, wall_seconds() - wall);
  }
  std::printf("%-42s one: %.2f s of processor, %.2f s; cpu/2: %.2f and %.2f s; processor x %.2f, wall / %.2f\n", name,
              best[0].processor, best[0].wall, best[1].processor, best[1].wall, best[1].processor / best[0].processor,
              best[0].wall / best[1].wall);
  std::fflush(stdout);
}

std::vector<float> mixture(int64_t rows, int64_t cols) {
  constexpr int64_t kCentres = 500;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> centres(static_cast<size_t>(kCentres * cols));
  for (float& value : centres) value = normal(random);
  std::vector<float> values(static_cast<size_t>(rows * cols));
  for (int64_t i = 0; i < rows; ++i) {
    const auto centre = static_cast<int64_t>(random() % kCentres);
    for (int64_t j = 0; j < cols; ++j) {
      values[static_cast<size_t>(i * cols + j)] = centres[static_cast<size_t>(centre * cols + j)] + 0.5f * normal(random);
    }
  }
  return values;
}

}  // namespace

int main() {
  constexpr int64_t kRows = 200000;
  constexpr int64_t kCols = 128;
  const std::vector<float> values = mixture(kRows, kCols);
  const MatrixView x(values.data(), kRows, kCols);
  const Resources whole = on("cpu", 2);
  compare("500 exact searches in 200,000 x 128", [&](const Resources& r) { (void)knn(x.slice(0, 500), x, {.k = 10}, r); });
  Index index("IVF512,PQ16");
  index.train(x.slice(0, 40000), whole);
  compare("add of 200,000 to IVF512,PQ16", [&](const Resources& r) {
    Index copy = index.clone();
    copy.add(x, Ownership::copy, r);
  });
  index.add(x, Ownership::copy, whole);
  const SearchParams params{.k = 10, .probes = 16};
  const MatrixView queries = x.slice(0, 20000);
  compare("20,000 searches of it, two copies", [&](const Resources& r) { (void)index.search(queries, params, r); });
  const Index shards = index.to({parse_devices("cpu/2"), 1});
  compare("20,000 searches of it, two shards",
          [&](const Resources& r) { (void)(r.parts() == 1 ? index : shards).search(queries, params, r); });
  KMeansParams kmeans;
  kmeans.clusters = 512;
  kmeans.iterations = 3;
  kmeans.init = KMeansInit::random;
  kmeans.tol = 0;
  compare("k-means of 200,000 to 512, 3 iterations", [&](const Resources& r) { KMeans(kmeans).fit(x, {}, r); });
  compare("exact graph of 8,000", [&](const Resources& r) {
    KnnGraphParams graph;
    graph.k = 10;
    graph.method = GraphMethod::exact;
    (void)knn_graph(x.slice(0, 8000), graph, r);
  });
  compare("graph of 200,000 by cells", [&](const Resources& r) {
    KnnGraphParams graph;
    graph.k = 10;
    graph.method = GraphMethod::cells;
    (void)knn_graph(x, graph, r);
  });
  return 0;
}
