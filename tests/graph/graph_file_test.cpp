#include <kith/graph_file.hpp>

#include <kith/error.hpp>
#include <kith/vector_file.hpp>

#include "exact/exact_check.hpp"
#include "graph/random_graphs.hpp"
#include "graph/same_graph.hpp"
#include "io/temporary_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace kith {
namespace {

using ::testing::HasSubstr;

Resources limited(int64_t bytes) {
  ResourceOptions options;
  options.device = Device::cpu();
  options.host_memory_limit = bytes;
  return Resources(options);
}

TEST(GraphFile, AGraphComesBackFromEveryFormat) {
  const testing::TemporaryDirectory directory;
  const KnnGraph graph = random_graph({70'000, 9}, 1);
  for (const auto& [ids, distances] : {std::pair{"a.npy", "b.npy"}, {"a.ibin", "b.fbin"}, {"a.ivecs", "b.fvecs"}}) {
    save_graph(graph, directory.path(ids), directory.path(distances), on_cpu());
    const KnnGraph mapped = load_graph(directory.path(ids), directory.path(distances), Metric::l2, on_cpu());
    expect_same_bytes(graph, mapped);
    EXPECT_EQ(mapped.report().method, "given");
    expect_same_bytes(graph, load_graph(directory.path(ids), directory.path(distances), Metric::l2, limited(1 << 25)));
  }
}

TEST(GraphFile, IsMappedWhereItLiesSo) {
  const testing::TemporaryDirectory directory;
  const KnnGraph graph = random_graph({5'000, 9}, 1);
  const Resources counting = limited(kNoLimit);
  save_graph(graph, directory.path("a.npy"), directory.path("b.npy"), on_cpu());
  const KnnGraph mapped = load_graph(directory.path("a.npy"), directory.path("b.npy"), Metric::l1, counting);
  EXPECT_EQ(mapped.metric(), Metric::l1);
  EXPECT_THROW(load_graph(directory.path("a.npy"), directory.path("b.npy"), Metric::l1, limited(5'000 * 9 * 12 - 1)),
               OutOfMemory);  // under a limit nothing is mapped
  std::filesystem::remove(directory.path("a.npy"));
  std::filesystem::remove(directory.path("b.npy"));
  const KnnGraph copy = mapped;
  copy.validate(on_cpu());  // the mapping lives as long as a copy
}

TEST(GraphFile, Refusals) {
  const testing::TemporaryDirectory directory;
  const KnnGraph graph = random_graph({50, 4}, 1);
  const std::string ids = directory.path("a.npy");
  const std::string distances = directory.path("b.npy");
  EXPECT_THROW(save_graph(graph, ids, ids, on_cpu()), InvalidArgument);
  EXPECT_THROW(save_graph(graph, directory.path("a.fbin"), distances, on_cpu()), InvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(distances));
  std::vector<int64_t> changed{1, 0};
  std::vector<float> apart{1, 1};
  const KnnGraph two({changed.data(), apart.data(), 2, 1, {}}, nullptr, Metric::l2, on_cpu());
  changed[1] = 1'000'000'000'000;
  EXPECT_THROW(save_graph(two, ids, distances, on_cpu()), InvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(ids));
  save_graph(graph, ids, distances, on_cpu());
  EXPECT_THROW(load_graph(ids, ids, Metric::l2, on_cpu()), InvalidArgument);
  EXPECT_THROW(load_graph(distances, distances, Metric::l2, on_cpu()), InvalidArgument);
  EXPECT_THROW(load_graph(directory.path("none.npy"), distances, Metric::l2, on_cpu()), IoError);
  IdFileWriter wrong(ids, 50, 4);
  const std::vector<int64_t> zeros(200, 0);
  wrong.append(zeros.data(), 50);
  wrong.commit();
  try {
    (void)load_graph(ids, distances, Metric::l2, on_cpu());
    FAIL() << "it was taken for a graph";
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), HasSubstr("a.npy"));
    EXPECT_THAT(error.what(), HasSubstr("row 0 is its own neighbour in column 0"));
  }
}

}  // namespace
}  // namespace kith
