// What several ranks gain: k-means, exact search, graphs, adds and searches by threads as ranks, one thread each,
// beside one rank.
//
//   kith_bench ranks [--ranks 2] [--kmeans-rows 1000000] [--knn-rows 200000] [--graph-rows 200000] [--out FILE]
//
// Times are the least of two turns. The processor time of the busiest rank says what ranks gain where other work shares
// the machine; bytes_received are those of a rank's messages, for each row or query of all ranks.
#include <kith/distributed.hpp>
#include <kith/index.hpp>
#include <kith/knn_graph.hpp>
#include <kith/kmeans.hpp>
#include <kith/knn.hpp>

#include "driver/benchmark.hpp"
#include "driver/timing.hpp"
#include "rows_around_centres.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace kith;

Resources one_thread() {
  ResourceOptions options;
  options.device = Device::cpu();
  options.threads = 1;
  return Resources(options);
}

struct Taken {
  double wall = 0;
  double busiest = 0;  // processor time of a rank
  int64_t received = 0;  // bytes, by a rank
};

// Passes everything on, and counts the bytes that the rank receives.
class CountingRanks final : public Communicator {
 public:
  CountingRanks(Communicator& ranks, std::atomic<int64_t>& received) : ranks_(ranks), received_(received) {}

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
  Communicator& ranks_;
  std::atomic<int64_t>& received_;
};

template <typename Work>
Taken time_of(int ranks, const Work& work) {
  std::vector<double> busy(static_cast<size_t>(ranks));
  std::atomic<int64_t> received{0};
  const bench::Watch watch;
  run_ranks(ranks, [&](Communicator& all) {
    const double before = bench::clock_seconds(CLOCK_THREAD_CPUTIME_ID);
    CountingRanks counting(all, received);
    work(counting);
    busy[static_cast<size_t>(all.rank())] = bench::clock_seconds(CLOCK_THREAD_CPUTIME_ID) - before;
  });
  return {watch.seconds().wall, *std::max_element(busy.begin(), busy.end()), received.load() / ranks};
}

class Comparison {
 public:
  Comparison(int ranks, bench::Report& report) : ranks_(ranks), report_(report) {}

  // `items`: rows or queries.
  template <typename Work>
  void run(const std::string& name, int64_t items, const Work& work) const {
    Taken one = time_of(1, work);
    Taken several = time_of(ranks_, work);
    for (const auto& [least, size] : {std::pair(&one, 1), std::pair(&several, ranks_)}) {
      const Taken again = time_of(size, work);
      least->wall = std::min(least->wall, again.wall);
      least->busiest = std::min(least->busiest, again.busiest);
    }
    report_.row({.name = name,
                 .ms = 1e3 * several.wall,
                 .runs = 2,
                 .clock = "wall",
                 .peers = {{"one rank", 1e3 * one.wall}},
                 .figures = {{"ranks", static_cast<double>(ranks_)},
                             {"one_rank_processor_s", one.busiest},
                             {"busiest_processor_s", several.busiest},
                             {"wall_ratio", one.wall / several.wall},
                             {"processor_ratio", one.busiest / several.busiest},
                             {"bytes_received", static_cast<double>(several.received) / static_cast<double>(items)}}});
  }

 private:
  int ranks_;
  bench::Report& report_;
};

void run(const bench::Options& options, bench::Report& report) {
  constexpr int64_t kCols = 128;
  const int64_t kmeans_rows = options.number("--kmeans-rows", 1'000'000);
  const int64_t knn_rows = options.number("--knn-rows", 200'000);
  const int64_t graph_rows = options.number("--graph-rows", 200'000);
  const Comparison comparison(static_cast<int>(options.number("--ranks", 2)), report);
  const int64_t most = std::max(kmeans_rows, knn_rows);
  std::vector<float> values(static_cast<size_t>(most * kCols));
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (float& value : values) value = normal(random);
  const MatrixView data(values.data(), most, kCols);
  const std::vector<float> grouped = rows_around_centres(graph_rows, kCols, random);
  const MatrixView rows(grouped.data(), graph_rows, kCols);
  comparison.run("graph by cells", graph_rows, [&](Communicator& all) {
    knn_graph(all, rows, {.k = 15, .method = GraphMethod::cells}, one_thread());
  });
  comparison.run("graph by nn_descent of a fifth of the rows", graph_rows / 5, [&](Communicator& all) {
    knn_graph(all, rows.slice(0, graph_rows / 5),
              {.k = 15, .method = GraphMethod::nn_descent, .start = GraphStart::random}, one_thread());
  });
  comparison.run("exact graph of a tenth of the rows", graph_rows / 10, [&](Communicator& all) {
    knn_graph(all, rows.slice(0, graph_rows / 10), {.k = 15, .method = GraphMethod::exact}, one_thread());
  });
  Index trained("IVF512,PQ16");
  trained.train(rows.slice(0, std::min<int64_t>(graph_rows, 50000)));
  comparison.run("add to IVF512,PQ16", graph_rows, [&](Communicator& all) {
    Index index = trained.clone();
    add(index, all, rows, {}, one_thread());
  });
  Index filled = trained.clone();
  filled.add(rows);
  const int64_t asked = std::min<int64_t>(graph_rows, 20000);
  comparison.run("search of it for 20,000", asked, [&](Communicator& all) {
    search(filled, all, rows.slice(0, asked), {.k = 10, .probes = 16}, one_thread());
  });

  const MatrixView base = data.slice(0, knn_rows);
  const MatrixView queries = data.slice(0, std::min<int64_t>(knn_rows, 20000));
  for (const Dealt dealt : {Dealt::queries, Dealt::rows}) {
    comparison.run(
        dealt == Dealt::queries ? "knn of 20,000, queries dealt out" : "knn of 20,000, rows dealt out", queries.rows(),
        [&](Communicator& all) { knn(all, queries, base, {.k = 10}, one_thread(), dealt); });
  }
  comparison.run("k-means to 1,024, 2 iterations", kmeans_rows, [&](Communicator& all) {
    KMeansParams params;
    params.clusters = 1024;
    params.iterations = 2;
    params.tol = 0;
    params.init = KMeansInit::random;
    KMeans model(params);
    fit(model, all, data.slice(0, kmeans_rows), {}, one_thread());
  });
}

const bench::Registered known({
    .name = "ranks",
    .about = "what several ranks gain, as threads of one process",
    .options = {"--ranks", "--kmeans-rows", "--knn-rows", "--graph-rows"},
    .run = run,
});

}  // namespace
