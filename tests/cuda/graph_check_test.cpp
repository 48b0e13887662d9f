// Graphs in a GPU's memory are checked there: the same rules as on the host, in the same words.
#include "cuda/device_data.hpp"
#include "cuda/parity.hpp"
#include "graph/random_graphs.hpp"

#include <kith/graph_recall.hpp>
#include <kith/smooth_paths.hpp>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace kith {
namespace {

class CudaGraphCheckSmall : public OnCuda {};
class CudaGraphCheck : public OnCuda {};

// Row i names i + 1, i + 2, ..., at distances 0, 1, ...
struct Arrays {
  int64_t rows;
  int64_t k;
  std::vector<int64_t> ids;
  std::vector<float> distances;

  Arrays(int64_t row_count, int64_t neighbors) : rows(row_count), k(neighbors) {
    for (int64_t i = 0; i < rows * k; ++i) {
      ids.push_back((i / k + i % k + 1) % rows);
      distances.push_back(static_cast<float>(i % k));
    }
  }
  int64_t& id(int64_t row, int64_t j) { return ids[static_cast<size_t>(row * k + j)]; }
  float& distance(int64_t row, int64_t j) { return distances[static_cast<size_t>(row * k + j)]; }

  // Not looked at.
  std::string told_on_host(Metric metric) {
    const KnnGraph graph = graph_of({ids.data(), distances.data(), rows, k, MemorySpace::host()}, metric);
    return text_thrown<InvalidArgument>([&] { graph.validate(on_cpu()); });
  }
  std::string told_there(Metric metric) const {
    const DeviceBytes there_ids(ids.data(), ids.size() * 8);
    const DeviceBytes there_distances(distances.data(), distances.size() * 4);
    const KnnGraph graph = graph_of({static_cast<int64_t*>(there_ids.data()), static_cast<float*>(there_distances.data()),
                                     rows, k, MemorySpace::cuda(0)},
                                    metric);
    return text_thrown<InvalidArgument>([&] { graph.validate(on_cuda()); });
  }

 private:
  static KnnGraph graph_of(const NeighborsView& view, Metric metric) {
    NeighborsView unseen = view;
    if (!view.space.host_readable()) return {unseen, nullptr, metric, on_cpu()};
    // One that the constructor does not look at, to say the same of: a copy on the device, and back.
    const DeviceBytes there_ids(view.ids, static_cast<size_t>(view.queries * view.k) * 8);
    const DeviceBytes there_distances(view.distances, static_cast<size_t>(view.queries * view.k) * 4);
    unseen.ids = static_cast<int64_t*>(there_ids.data());
    unseen.distances = static_cast<float*>(there_distances.data());
    unseen.space = MemorySpace::cuda(0);
    return KnnGraph(unseen, nullptr, metric, on_cpu()).to(MemorySpace::host(), on_cpu());
  }
};

using Change = std::function<void(Arrays&)>;

void expect_refused(const Arrays& right, const char* what, const Change& change, Metric metric = Metric::l2) {
  SCOPED_TRACE(::testing::Message() << what << ", k " << right.k);
  Arrays wrong = right;
  change(wrong);
  const std::string expected = wrong.told_on_host(metric);
  EXPECT_FALSE(expected.empty());
  EXPECT_EQ(wrong.told_there(metric), expected);
}

TEST_F(CudaGraphCheckSmall, SaysWhatTheHostSays) {
  for (const int64_t k : {1, 2, 7, 32, 33, 100, 1000}) {
    Arrays right(1500, k);
    EXPECT_EQ(right.told_there(Metric::l2), "");
    const int64_t last = k - 1;
    for (const int64_t row : {int64_t{0}, int64_t{700}, int64_t{1499}}) {
      expect_refused(right, "past the end", [&](Arrays& a) { a.id(row, last) = 1500; });
      expect_refused(right, "past 32 bits", [&](Arrays& a) { a.id(row, last) = (int64_t{1} << 32) + row + 1; });
      expect_refused(right, "below -1", [&](Arrays& a) { a.id(row, 0) = -2; });
      expect_refused(right, "itself", [&](Arrays& a) { a.id(row, last) = row; });
      expect_refused(right, "no number", [&](Arrays& a) { a.distance(row, last) = std::nanf(""); });
      if (k == 1) continue;
      expect_refused(right, "twice", [&](Arrays& a) { a.id(row, last) = a.id(row, 0); });
      expect_refused(right, "behind nobody", [&](Arrays& a) { a.id(row, last - 1) = -1; });
      expect_refused(right, "not sorted", [&](Arrays& a) { a.distance(row, last) = -1; });
      expect_refused(right, "the first of two rows", [&](Arrays& a) {
        a.id(row, last) = row;
        a.id((row + 1) % 1500, 0) = 9999;
      });
    }
  }
}

TEST_F(CudaGraphCheckSmall, TakesWhatTheHostTakes) {
  Arrays graph(50, 5);
  graph.distance(3, 1) = graph.distance(3, 0);  // a tie
  for (int64_t j = 2; j < 5; ++j) {  // whatever is told of nobody
    graph.id(7, j) = -1;
    graph.distance(7, j) = j == 2 ? std::nanf("") : -1.0f;
  }
  for (int64_t j = 0; j < 5; ++j) graph.id(8, j) = -1;
  EXPECT_EQ(graph.told_there(Metric::l2), "");
  graph.distance(4, 4) = std::numeric_limits<float>::infinity();
  EXPECT_EQ(graph.told_there(Metric::l2), "");
  // Larger is nearer: it is sorted the wrong way.
  EXPECT_NE(graph.told_there(Metric::inner_product), "");
  EXPECT_EQ(graph.told_there(Metric::inner_product), graph.told_on_host(Metric::inner_product));
  EXPECT_EQ(Arrays(0, 4).told_there(Metric::l2), "");
}

TEST_F(CudaGraphCheck, MoreNeighborsThanAreCheckedThere) {
  Arrays right(50, 8500);
  for (int64_t i = 0; i < 50 * 8500; ++i) {
    if (i % 8500 >= 49) right.ids[static_cast<size_t>(i)] = -1;
  }
  EXPECT_EQ(right.told_there(Metric::l2), "");
  expect_refused(right, "twice", [](Arrays& a) { a.id(49, 48) = a.id(49, 1); });
}

// Paths on a GPU ask of a graph what they ask on the host.
TEST_F(CudaGraphCheckSmall, PathsRefuseWhatIsNoGraph) {
  const Arrays right(40, 4);
  const auto refused = [&](const Change& change) {
    Arrays wrong = right;
    change(wrong);
    const DeviceBytes ids(wrong.ids.data(), wrong.ids.size() * 8);
    const DeviceBytes distances(wrong.distances.data(), wrong.distances.size() * 4);
    const KnnGraph graph({static_cast<int64_t*>(ids.data()), static_cast<float*>(distances.data()), 40, 4,
                          MemorySpace::cuda(0)},
                         nullptr, Metric::l2, on_cuda());
    const std::string there = text_thrown<InvalidArgument>([&] { SmoothPaths(graph, on_cuda()); });
    EXPECT_EQ(there, text_thrown<InvalidArgument>([&] { SmoothPaths(graph, on_cpu()); }));
    EXPECT_NE(there, "");
  };
  refused([](Arrays& a) { a.id(5, 3) = a.id(5, 1); });
  refused([](Arrays& a) { a.id(6, 2) = 6; });
  refused([](Arrays& a) { a.distance(7, 3) = 0; });
  refused([](Arrays& a) { a.id(8, 1) = -1; });
}

}  // namespace
}  // namespace kith
