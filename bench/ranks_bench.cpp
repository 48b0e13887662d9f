// What several ranks gain: k-means, exact search, graphs, adds and searches by threads as ranks, one thread each, beside one
// process with one thread. Prints the least time of two turns, the processor time of the busiest rank, which says what
// ranks gain where the machine is shared with others, and the bytes that a rank receives in its messages for each row or
// query of all ranks. `ranks_bench [ROWS_KMEANS] [ROWS_KNN] [RANKS] [ROWS_GRAPH]`
#include <kith/distributed.hpp>
#include <kith/index.hpp>
#include <kith/knn_graph.hpp>
#include <kith/kmeans.hpp>
#include <kith/knn.hpp>

#include <time.h>

#include <algorithm>
#include <atomic>
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
  int64_t received = 0;  // bytes, by a rank
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

// Passes everything on, and counts the bytes that the rank receives.
class CountingRanks final : public kith::Communicator {
 public:
  CountingRanks(kith::Communicator& ranks, std::atomic<int64_t>& received) : ranks_(ranks), received_(received) {}

  int rank() const override { return ranks_.rank(); }
  int size() const override { return ranks_.size(); }
  void barrier() override { ranks_.barrier(); }
  void begin_steps(int64_t count) override { ranks_.begin_steps(count); }
  int64_t next_step() override { return ranks_.next_step(); }

 protected:
  void send_piece(int to, const void* data, int64_t bytes) override { ranks_.send(to, data, bytes); }
  void receive_piece(int from, void* data, int64_t bytes) override {
    ranks_.receive(from, data, bytes);
    received_ += bytes;
  }
  void broadcast_piece(int root, void* data, int64_t bytes) override {
    ranks_.broadcast(root, data, bytes);
    if (rank() != root) received_ += bytes;
  }

 private:
  kith::Communicator& ranks_;
  std::atomic<int64_t>& received_;
};

template <typename Work>
Taken time_of(int ranks, const Work& work) {
  std::vector<double> busy(static_cast<size_t>(ranks));
  std::atomic<int64_t> received{0};
  const double began = wall_seconds();
  kith::run_ranks(ranks, [&](kith::Communicator& all) {
    const double before = thread_seconds();
    CountingRanks counting(all, received);
    work(counting);
    busy[static_cast<size_t>(all.rank())] = thread_seconds() - before;
  });
  return {wall_seconds() - began, *std::max_element(busy.begin(), busy.end()), received.load() / ranks};
}

// `items`: rows or queries.
template <typename Work>
void compare(const char* name, int ranks, int64_t items, const Work& work) {
  Taken one = time_of(1, work);
  Taken several = time_of(ranks, work);
  for (const auto& [least, size] : {std::pair(&one, 1), std::pair(&several, ranks)}) {
    const Taken again = time_of(size, work);
    least->wall = std::min(least->wall, again.wall);
    least->busiest = std::min(least->busiest, again.busiest);
  }
  std::printf("%-34s 1 rank %7.2f s (processor %7.2f)   %d ranks %7.2f s (busiest %7.2f)   %.2f x (%.2f x)   %.1f bytes\n",
              name, one.wall, one.busiest, ranks, several.wall, several.busiest, one.wall / several.wall,
              one.busiest / several.busiest, static_cast<double>(several.received) / static_cast<double>(items));
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
  compare("graph by cells", ranks, graph_rows, [&](kith::Communicator& all) {
    kith::knn_graph(all, rows, {.k = 15, .method = kith::GraphMethod::cells}, one_thread());
  });
  compare("graph by nn_descent, a fifth", ranks, graph_rows / 5, [&](kith::Communicator& all) {
    kith::knn_graph(all, rows.slice(0, graph_rows / 5),
                    {.k = 15, .method = kith::GraphMethod::nn_descent, .start = kith::GraphStart::random}, one_thread());
  });
  compare("exact graph of a tenth of the rows", ranks, graph_rows / 10, [&](kith::Communicator& all) {
    kith::knn_graph(all, rows.slice(0, graph_rows / 10), {.k = 15, .method = kith::GraphMethod::exact}, one_thread());
  });
  kith::Index trained("IVF512,PQ16");
  trained.train(rows.slice(0, std::min<int64_t>(graph_rows, 50000)));
  compare("add to IVF512,PQ16", ranks, graph_rows, [&](kith::Communicator& all) {
    kith::Index index = trained.clone();
    kith::add(index, all, rows, {}, one_thread());
  });
  kith::Index filled = trained.clone();
  filled.add(rows);
  const int64_t asked = std::min<int64_t>(graph_rows, 20000);
  compare("search of it for 20,000", ranks, asked, [&](kith::Communicator& all) {
    kith::search(filled, all, rows.slice(0, asked), {.k = 10, .probes = 16}, one_thread());
  });

  const kith::MatrixView base = data.slice(0, knn_rows);
  const kith::MatrixView queries = data.slice(0, std::min<int64_t>(knn_rows, 20000));
  for (const kith::Dealt dealt : {kith::Dealt::queries, kith::Dealt::rows}) {
    compare(dealt == kith::Dealt::queries ? "knn of 20,000, queries dealt out" : "knn of 20,000, rows dealt out", ranks,
            queries.rows(), [&](kith::Communicator& all) { kith::knn(all, queries, base, {.k = 10}, one_thread(), dealt); });
  }
  compare("k-means to 1,024, 2 iterations", ranks, kmeans_rows, [&](kith::Communicator& all) {
    kith::KMeansParams params;
    params.clusters = 1024;
    params.iterations = 2;
    params.tol = 0;
    params.init = kith::KMeansInit::random;
    kith::KMeans model(params);
    kith::fit(model, all, data.slice(0, kmeans_rows), {}, one_thread());
  });
}
