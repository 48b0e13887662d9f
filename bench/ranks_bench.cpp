// What several ranks gain: k-means and exact search by threads as ranks, one thread each, beside one process with one
// thread. Prints the time, and the processor time of the busiest rank, which says what ranks gain where the machine is
// shared with others. `ranks_bench [ROWS_KMEANS] [ROWS_KNN] [RANKS]`
#include <kith/distributed.hpp>
#include <kith/kmeans.hpp>
#include <kith/knn.hpp>

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
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
  const Taken one = time_of(1, work);
  const Taken several = time_of(ranks, work);
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
