// When a graph's folder is made in steps: under a limit, where steps are asked for, and where some are there to go on with.
#include <kith/error.hpp>
#include <kith/graph_folder.hpp>
#include <kith/graph_of_files.hpp>
#include <kith/knn_graph.hpp>
#include <kith/vector_file.hpp>

#include "core/memory_budget.hpp"
#include "graph/build/cells_on_disk/cells_on_disk.hpp"
#include "graph/build/exact_on_disk/exact_on_disk.hpp"
#include "graph/build/ggm/ggm_on_disk.hpp"
#include "graph/build/method/build_graph.hpp"
#include "io/disk.hpp"
#include "io/temporary_directory.hpp"
#include "io/thrown.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace kith {
namespace {

using reference::Shape;
using testing::expect_refusal;
using testing::TemporaryDirectory;

Resources work_under(int64_t limit) {
  ResourceOptions options;
  options.device = Device::cpu();
  options.threads = 2;
  options.host_memory_limit = limit;
  return Resources(options);
}

// Stops where the graph is to be written, as a kill would: all steps stay.
struct Stopped {};
class StoppingSink final : public GraphSink {
 public:
  void begin() override { throw Stopped(); }
  void append(const NeighborsView&) override {}
  void finish(const GraphReport&) override {}
};

class GraphWorkFolder : public ::testing::Test {
 protected:
  GraphWorkFolder() : rows(reference::make_floats(Shape::gaussian, 2000, 12, 1)) {
    write_vectors(directory.path("x.npy"), rows.view());
  }
  VectorFile file() const { return VectorFile(directory.path("x.npy")); }
  std::string out() const { return directory.path("g"); }
  std::string work() const { return directory.path("g/work"); }

  GraphHashes expected(const KnnGraphParams& params) const {
    return hash_graph(knn_graph(rows.view(), params, work_under(kNoLimit)), work_under(kNoLimit));
  }
  void expect_graph(const KnnGraphParams& params) const {
    EXPECT_EQ(graph_folder_info(out()).hashes, expected(params));
    EXPECT_FALSE(std::filesystem::exists(work()));
  }
  // Leaves a finished step of the work, which a run that goes on takes, and one that does not would leave behind.
  void leave_work(const KnnGraphParams& params) const {
    const VectorFile x = file();
    const DiskWork left{.disk = real_disk(), .folder = work()};
    StoppingSink sink;
    const Resources resources = work_under(kNoLimit);
    const auto begin = [&] {
      if (params.method == GraphMethod::exact) exact_on_disk(x, params, left, sink, resources);
      if (params.method == GraphMethod::ggm) merge_on_disk(ggm_work(x, params), left, sink, resources);
      if (params.method == GraphMethod::cells) {
        cells_on_disk(x, cells_params(x.rows(), params), true, left, sink, resources);
      }
    };
    EXPECT_THROW(begin(), Stopped);
    ASSERT_TRUE(std::filesystem::exists(work() + "/manifest"));
  }

  TemporaryDirectory directory;
  reference::Matrix<float> rows;
};

const KnnGraphParams kExact{.k = 5, .method = GraphMethod::exact};
const KnnGraphParams kCells{.k = 5, .method = GraphMethod::cells, .recall = 0.9, .cells = 20};
const KnnGraphParams kGgm{.k = 5, .method = GraphMethod::ggm, .recall = 0.9, .list_length = 16, .shards = 3};

TEST_F(GraphWorkFolder, WorkThatWasBegunUnderALimitIsEndedWithoutOne) {
  for (const KnnGraphParams& params : {kExact, kCells, kGgm}) {
    SCOPED_TRACE(name_of(params.method));
    leave_work(params);
    knn_graph_folder(file(), out(), params, work_under(kNoLimit));
    expect_graph(params);
  }
}

TEST_F(GraphWorkFolder, AFolderThatIsNamedIsUsedWithoutALimitToo) {
  for (const KnnGraphParams& params : {kExact, kCells, kGgm}) {
    SCOPED_TRACE(name_of(params.method));
    GraphWork kept;
    kept.folder = directory.path("steps");
    kept.keep = true;
    knn_graph_folder(file(), out(), params, kept, work_under(kNoLimit));
    expect_graph(params);
    EXPECT_TRUE(std::filesystem::exists(directory.path("steps/manifest")));
    std::filesystem::remove_all(directory.path("steps"));
    kept.folder.clear();
    knn_graph_folder(file(), out(), params, kept, work_under(kNoLimit));
    EXPECT_TRUE(std::filesystem::exists(work() + "/manifest"));
    std::filesystem::remove_all(work());
  }
}

TEST_F(GraphWorkFolder, MethodsThatKeepNoStepsSaySo) {
  GraphWork named;
  named.folder = directory.path("steps");
  KnnGraphParams descent{.k = 5, .method = GraphMethod::nn_descent, .recall = 0.9};
  expect_refusal<Unsupported>([&] { knn_graph_folder(file(), out(), descent, named, work_under(kNoLimit)); },
                              "keeps no steps");
  leave_work(kCells);
  expect_refusal<InvalidArgument>([&] { knn_graph_folder(file(), out(), descent, work_under(kNoLimit)); },
                                  "holds work that was not ended");
  expect_refusal<InvalidArgument>([&] { knn_graph_folder(file(), out(), kExact, work_under(kNoLimit)); },
                                  "work is an exact graph, and was a graph by cells");
  knn_graph_folder(file(), out(), kCells, work_under(kNoLimit));
  expect_graph(kCells);
}

// What `automatic` finds soonest for so few rows needs the memory of all of them no more.
TEST_F(GraphWorkFolder, AutomaticIsExactFromDiskWhereItIsExactInMemory) {
  const auto wide = reference::make_floats(Shape::gaussian, 2500, 600, 1);  // 6 MB
  write_vectors(directory.path("x.npy"), wide.view());
  const KnnGraphParams params{.k = 5};
  const KnnGraph truth = knn_graph(wide.view(), params, work_under(kNoLimit));
  ASSERT_EQ(truth.report().method, "exact");
  const int64_t least = exact_on_disk_footprint(file(), params, work_under(kNoLimit)).host;
  EXPECT_THROW((void)knn_graph(file(), params, work_under(least)), OutOfMemory);
  EXPECT_EQ(knn_graph_folder(file(), out(), params, work_under(least)).method, "exact");
  EXPECT_EQ(graph_folder_info(out()).hashes, hash_graph(truth, work_under(kNoLimit)));
}

TEST_F(GraphWorkFolder, MergesGoOnWithoutALimit) {
  for (const int64_t count : {2, 3}) {
    std::vector<GraphOfFile> some;
    for (int64_t part = 0; part < count; ++part) {
      const std::string path = directory.path("part" + std::to_string(part) + ".npy");
      const MatrixView own = rows.view().slice(part * 600, 600);
      write_vectors(path, own);
      some.push_back({knn_graph(own, kExact, work_under(kNoLimit)), VectorFile(path)});
    }
    const GraphMergeParams params{.recall = 0.9};
    merge_graphs_folder(some, directory.path("memory"), params, {}, work_under(kNoLimit));
    GraphWork kept;
    kept.folder = directory.path("steps");
    kept.keep = true;
    merge_graphs_folder(some, out(), params, kept, work_under(kNoLimit));
    EXPECT_EQ(graph_folder_info(out()).hashes, graph_folder_info(directory.path("memory")).hashes);
    EXPECT_TRUE(std::filesystem::exists(directory.path("steps/manifest")));
    kept.keep = false;
    merge_graphs_folder(some, out(), params, kept, work_under(kNoLimit));
    EXPECT_EQ(graph_folder_info(out()).hashes, graph_folder_info(directory.path("memory")).hashes);
    EXPECT_TRUE(std::filesystem::is_empty(directory.path("steps")));
  }
}

}  // namespace
}  // namespace kith
