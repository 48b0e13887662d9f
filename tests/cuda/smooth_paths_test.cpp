// Boruvka's rounds on the GPU against the CPU's, level by level and byte for byte, on graphs with ties, parts and long
// chains; widths and paths that follow from them; and graphs that are none.
#include <kith/smooth_paths.hpp>

#include <kith/error.hpp>

#include "cuda/parity.hpp"
#include "graph/random_graphs.hpp"
#include "paths/boruvka.hpp"

#include <cmath>
#include <utility>
#include <vector>

namespace kith {
namespace {

class CudaSmoothPathsSmall : public OnCuda {};
class CudaSmoothPaths : public OnCuda {};

// A backend whose levels are looked at.
class Watched : public BoruvkaBackend {
 public:
  explicit Watched(std::unique_ptr<BoruvkaBackend> inner) : inner_(std::move(inner)) {}
  void find_least_edges(MergeLevel& level) override { inner_->find_least_edges(level); }
  int64_t join(MergeLevel& level) override {
    const int64_t parts = inner_->join(level);
    for (const HostArray<uint32_t>* array : {&level.parent, &level.key, &level.near, &level.far, &level.depth}) {
      seen.emplace_back(array->begin(), array->end());
    }
    return parts;
  }
  std::vector<std::vector<uint32_t>> seen;

 private:
  std::unique_ptr<BoruvkaBackend> inner_;
};

void expect_same_rounds(const KnnGraph& graph) {
  SCOPED_TRACE(::testing::Message() << graph.rows() << " rows, k " << graph.k());
  const EdgeLists edges(graph, {}, on_cpu());
  Watched expected(make_boruvka_cpu(edges, on_cpu()));
  const MergeTree tree = boruvka(expected, graph.rows(), on_cpu());
  for (const KnnGraph& given : {graph, graph.to(MemorySpace::cuda(0), on_cuda())}) {
    DeviceMergeTree levels;
    Watched found(make_boruvka_cuda(given, levels, on_cuda()));
    EXPECT_EQ(boruvka(found, graph.rows(), on_cuda()).parts(), tree.parts());
    ASSERT_EQ(found.seen.size(), expected.seen.size());
    for (size_t i = 0; i < found.seen.size(); ++i) ASSERT_EQ(found.seen[i], expected.seen[i]) << "array " << i;
    EXPECT_EQ(levels.levels.size() + 1, expected.seen.size() / 5);
  }
}

const GraphShape kShapes[] = {
    {1, 1},          {2, 1},           {3, 2, 1, 1},   {30, 5, 1, 3},         {60, 3, 1, 5, true},
    {257, 4, 3, 10}, {900, 1, 1, 100}, {900, 6, 2, 1}, {700, 40, 2, 2, true}, {4000, 7, 1, 1 << 20}};

TEST_F(CudaSmoothPathsSmall, RoundsAreTheCpus) {
  for (const GraphShape& shape : kShapes) {
    for (uint64_t seed = 0; seed < 3; ++seed) expect_same_rounds(random_graph(shape, seed));
  }
}

TEST_F(CudaSmoothPathsSmall, LongChains) {
  const int64_t rows = 3000;
  expect_same_rounds(chain(rows, [](int64_t i) { return i; }));
  expect_same_rounds(chain(rows, [&](int64_t i) { return rows - i; }));
  expect_same_rounds(chain(rows, [](int64_t) { return 1; }));
}

TEST_F(CudaSmoothPaths, ManyRows) {
  expect_same_rounds(random_graph({200'000, 12}, 1));
  expect_same_rounds(random_graph({200'000, 6, 3, 9}, 2));
  expect_same_rounds(chain(100'000, [](int64_t i) { return (i * 7919) % 10'007; }));
}

TEST_F(CudaSmoothPaths, WidthsAndPaths) {
  const int64_t rows = 30'000;
  const KnnGraph graph = random_graph({rows, 8, 2}, 3);
  const SmoothPaths expected(graph, on_cpu());
  const KnnGraph there = graph.to(MemorySpace::cuda(0), on_cuda());
  const CounterRng random(1, 1);
  const int64_t count = 20'000;
  std::vector<int64_t> pairs;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t a = random.below(static_cast<uint64_t>(2 * i), static_cast<uint32_t>(rows));
    pairs.insert(pairs.end(),
                 {a, i % 50 == 0 ? a : random.below(static_cast<uint64_t>(2 * i + 1), static_cast<uint32_t>(rows))});
  }
  std::vector<float> widths(static_cast<size_t>(count));
  expected.widths(pairs.data(), count, widths.data(), on_cpu());
  // Asked for, and where the graph lies.
  for (const auto& [given, resources] : {std::pair(graph, on_cuda()), std::pair(there, Resources())}) {
    const SmoothPaths paths(given, resources);
    EXPECT_EQ(paths.rows(), rows);
    EXPECT_EQ(paths.parts(), expected.parts());
    std::vector<float> found(static_cast<size_t>(count));
    paths.widths(pairs.data(), count, found.data(), resources);  // on the GPU
    EXPECT_EQ(found, widths);
    for (int64_t i = 0; i < 30; ++i) {
      const int64_t a = pairs[static_cast<size_t>(2 * i)];
      const int64_t b = pairs[static_cast<size_t>(2 * i + 1)];
      EXPECT_EQ(paths.width(a, b), widths[static_cast<size_t>(i)]);
      for (const PathBy by : {PathBy::steps, PathBy::tree}) {
        const SmoothPath one = paths.path(a, b, by, resources);
        const SmoothPath other = expected.path(a, b, by, on_cpu());
        EXPECT_EQ(std::vector<int64_t>(one.begin(), one.end()), std::vector<int64_t>(other.begin(), other.end()));
      }
    }
  }
  EXPECT_EQ(SmoothPaths(there, on_cpu()).parts(), expected.parts());  // copied to the host
}

TEST_F(CudaSmoothPathsSmall, GraphsThatAreNone) {
  std::vector<int64_t> ids{1, 0};
  std::vector<float> distances{1, 1};
  const KnnGraph graph({ids.data(), distances.data(), 2, 1, {}}, nullptr, Metric::l2, on_cpu());
  ids[1] = 5'000'000'000;
  EXPECT_THROW(SmoothPaths(graph, on_cuda()), InvalidArgument);
  ids[1] = -7;
  EXPECT_THROW(SmoothPaths(graph, on_cuda()), InvalidArgument);
  ids[1] = 0;
  distances[0] = std::nanf("");
  EXPECT_THROW(SmoothPaths(graph, on_cuda()), InvalidArgument);
  distances[0] = 1;
  EXPECT_EQ(SmoothPaths(graph, on_cuda()).parts(), 1);
  EXPECT_EQ(SmoothPaths(KnnGraph(), on_cuda()).rows(), 0);
}

TEST_F(CudaSmoothPathsSmall, AGraphGoesToADeviceAndBack) {
  const KnnGraph graph = random_graph({3000, 7}, 5);
  const KnnGraph there = graph.to(MemorySpace::cuda(0), on_cuda());
  EXPECT_EQ(there.space(), MemorySpace::cuda(0));
  there.validate(on_cpu());
  const KnnGraph back = there.to(MemorySpace::host(), on_cpu());
  EXPECT_TRUE(std::equal(graph.ids(), graph.ids() + 21'000, back.ids()));
  EXPECT_TRUE(std::equal(graph.distances(), graph.distances() + 21'000, back.distances()));
  EXPECT_EQ(there.to_csr(on_cpu()).size(), graph.to_csr(on_cpu()).size());
}

}  // namespace
}  // namespace kith
