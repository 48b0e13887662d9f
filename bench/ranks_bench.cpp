// What several ranks gain: k-means, exact search, graphs, adds and searches by threads as ranks, one thread each, beside one
// process with one thread. Prints the least time of two turns, and the processor time of the busiest rank, which says what
// ranks gain where the machine is shared with others. `ranks_bench [ROWS_KMEANS] [ROWS_KNN] [RANKS] [ROWS_GRAPH]`
#include <kith/distributed.hpp>
#include <kith/index.hpp>
#include <kith/knn_graph.hpp>
#include <kith/kmeans.hpp>
#include <kith/knn.hpp>

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <utility>
#include <vector>

namespace {

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

kith::Resources one_thread() {
  kith::ResourceOptions options;
  options.device = kith::Device::cpu();
  options.threads = 1;
  return kith::Resources(options);
}

struct Taken {
  double wall = 0;
  double busiest = 0;  // processor time of a rank
};

// Rows around 500 centres.
std::vector<float> mixture(int64_t rows, int64_t cols, std::mt19937& random) {
  constexpr int64_t kCentres = 500;
  std::normal_distribution<float> normal;
  std::vector<float> centres(static_cast<size_t>(kCentres * cols));
  for (float& value : centres) value = normal(random);
  std::vector<float> values(static_cast<size_t>(rows * cols));
  for (int64_t i = 0; i < rows; ++i) {
    const auto centre = static_cast<int64_t>(random() % kCentres);
    for (int64_t j = 0; j < cols; ++j) {
      values[static_cast<size_t>(i * cols + j)] = centres[static_cast<size_t>(centre * cols + j)] + 0.5F * normal(random);
    }
  }
  return values;
}

template <typename Work>
Taken time_of(int ranks, const Work& work) {
  std::vector<double> busy(static_cast<size_t>(ranks));
  const double began = wall_seconds();
  kith::run_ranks(ranks, [&](kith::Communicator& all) {
    const double before = thread_seconds();
    work(all);
    busy[static_cast<size_t>(all.rank())] = thread_seconds() - before;
  });
  return {wall_seconds() - began, *std::max_element(busy.begin(), busy.end())};
}

template <typename Work>
void compare(const char* name, int ranks, const Work& work) {
  Taken one = time_of(1, work);
  Taken several = time_of(ranks, work);
  for (const auto& [least, size] : {std::pair(&one, 1), std::pair(&several, ranks)}) {
    const Taken again = time_of(size, work);
    *least = {std::min(least->wall, again.wall), std::min(least->busiest, again.busiest)};
  }
  std::printf("%-34s 1 rank %7.2f s (processor %7.2f)   %d ranks %7.2f s (busiest %7.2f)   %.2f x (%.2f x)\n", name,
              one.wall, one.busiest, ranks, several.wall, several.busiest, one.wall / several.wall,
              one.busiest / several.busiest);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t kmeans_rows = argc > 1 ? std::atoll(argv[1]) : 1000000;
  const int64_t knn_rows = argc > 2 ? std::atoll(argv[2]) : 200000;
  const int ranks = argc > 3 ? std::atoi(argv[3]) : 2;
  constexpr int64_t kCols = 128;
  std::vector<float> values(static_cast<size_t>(std::max(kmeans_rows, knn_rows) * kCols));
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (float& value : values) value = normal(random);
  const kith::MatrixView data(values.data(), std::max(kmeans_rows, knn_rows), kCols);

  const int64_t graph_rows = argc > 4 ? std::atoll(argv[4]) : 200000;
  const std::vector<float> grouped = mixture(graph_rows, kCols, random);
  const kith::MatrixView rows(grouped.data(), graph_rows, kCols);
  compare("graph by cells", ranks, [&](kith::Communicator& all) {
    kith::knn_graph(all, rows, {.k = 15, .method = kith::GraphMethod::cells}, one_thread());
  });
  compare("exact graph of a tenth of the rows", ranks, [&](kith::Communicator& all) {
    kith::knn_graph(all, rows.slice(0, graph_rows / 10), {.k = 15, .method = kith::GraphMethod::exact}, one_thread());
  });
  kith::Index trained("IVF512,PQ16");
  trained.train(rows.slice(0, std::min<int64_t>(graph_rows, 50000)));
  compare("add to IVF512,PQ16", ranks, [&](kith::Communicator& all) {
    kith::Index index = trained.clone();
    kith::add(index, all, rows, {}, one_thread());
  });
  kith::Index filled = trained.clone();
  filled.add(rows);
  compare("search of it for 20,000", ranks, [&](kith::Communicator& all) {
    kith::search(filled, all, rows.slice(0, std::min<int64_t>(graph_rows, 20000)), {.k = 10, .probes = 16}, one_thread());
  });

  const kith::MatrixView base = data.slice(0, knn_rows);
  const kith::MatrixView queries = data.slice(0, std::min<int64_t>(knn_rows, 20000));
  for (const kith::Dealt dealt : {kith::Dealt::queries, kith::Dealt::rows}) {
    compare(dealt == kith::Dealt::queries ? "knn of 20,000, queries dealt out" : "knn of 20,000, rows dealt out", ranks,
            [&](kith::Communicator& all) { kith::knn(all, queries, base, {.k = 10}, one_thread(), dealt); });
  }
  compare("k-means to 1,024, 2 iterations", ranks, [&](kith::Communicator& all) {
    kith::KMeansParams params;
    params.clusters = 1024;
    params.iterations = 2;
    params.tol = 0;
    params.init = kith::KMeansInit::random;
    kith::KMeans model(params);
    kith::fit(model, all, data.slice(0, kmeans_rows), {}, one_thread());
  });
}
