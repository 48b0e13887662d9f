// Two parts of a CPU, of one thread each, against one thread: processor time and wall time of calls that parts share.
//
//   devices_bench [WORD]    calls whose names have the word
#include <kith/kith.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <random>
#include <string>
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

std::string wanted_word;

// The least of three, in turns.
template <typename Call>
void compare(const char* name, const Call& call) {
  if (std::string(name).find(wanted_word) == std::string::npos) return;
  const Resources both[] = {on("cpu", 1), on("cpu/2", 2)};
  Times best[2];
  for (int turn = 0; turn < 6; ++turn) {
    const double processor = processor_seconds();
    const double wall = wall_seconds();
    call(both[turn % 2]);
    best[turn % 2].processor = std::min(best[turn % 2].processor, processor_seconds() - processor);
    best[turn % 2].wall = std::min(best[turn % 2].wall, wall_seconds() - wall);
  }
  std::printf("%-54s one: %.2f s of processor, %.2f s; cpu/2: %.2f and %.2f s; processor x %.2f, wall / %.2f\n", name,
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

int main(int argc, char** argv) {
  if (argc > 1) wanted_word = argv[1];
  constexpr int64_t kRows = 1000000;
  constexpr int64_t kCols = 128;
  const std::vector<float> values = mixture(kRows, kCols);
  const MatrixView x(values.data(), kRows, kCols);
  const MatrixView fewer = x.slice(0, 200000);
  const Resources whole = on("cpu", 2);
  compare("500 exact searches in 200,000 x 128",
          [&](const Resources& r) { (void)knn(fewer.slice(0, 500), fewer, {.k = 10}, r); });
  compare("exact graph of 16,000", [&](const Resources& r) {
    (void)knn_graph(x.slice(0, 16000), {.k = 10, .method = GraphMethod::exact}, r);
  });
  compare("graph of 200,000 by cells", [&](const Resources& r) {
    (void)knn_graph(fewer, {.k = 10, .method = GraphMethod::cells}, r);
  });
  compare("graph of 100,000 by ggm, four shards", [&](const Resources& r) {
    (void)knn_graph(x.slice(0, 100000), {.k = 10, .method = GraphMethod::ggm, .shards = 4}, r);
  });
  KMeansParams kmeans;
  kmeans.clusters = 1024;
  kmeans.iterations = 2;
  kmeans.init = KMeansInit::random;
  kmeans.tol = 0;
  compare("k-means of 1,000,000 to 1,024, 2 iterations", [&](const Resources& r) { KMeans(kmeans).fit(x, {}, r); });
  Index index("IVF1024,PQ16");
  index.train(x.slice(0, 50000), whole);
  compare("add of 200,000 to IVF1024,PQ16", [&](const Resources& r) {
    Index copy = index.clone();
    copy.add(fewer, Ownership::copy, r);
  });
  index.add(x, Ownership::copy, whole);
  const SearchParams params{.k = 10, .probes = 16};
  const MatrixView queries = x.slice(0, 10000);
  compare("10,000 searches of 1,000,000 in IVF1024,PQ16, copies",
          [&](const Resources& r) { (void)index.search(queries, params, r); });
  const Index shards = index.to({parse_devices("cpu/2"), 1});
  compare("10,000 searches of 1,000,000 in IVF1024,PQ16, shards",
          [&](const Resources& r) { (void)(r.parts() == 1 ? index : shards).search(queries, params, r); });
  return 0;
}
