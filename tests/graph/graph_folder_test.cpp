// A graph in a folder: arrays that are mapped, a report with their hashes, and what is no such folder.
#include <kith/graph_folder.hpp>

#include <kith/error.hpp>
#include <kith/graph_of_files.hpp>
#include <kith/vector_file.hpp>

#include "core/memory_budget.hpp"
#include "exact/exact_check.hpp"
#include "graph/handle/graph_folder.hpp"
#include "graph/random_graphs.hpp"
#include "graph/same_graph.hpp"
#include "io/temporary_directory.hpp"
#include "io/thrown.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace kith {
namespace {

using testing::expect_refusal;
using testing::TemporaryDirectory;

TEST(GraphFolder, AGraphComesBack) {
  const TemporaryDirectory directory;
  const std::string folder = directory.path("some/graph");
  const KnnGraph graph = random_graph({5'000, 9}, 1);
  save_graph_folder(graph, folder, on_cpu());
  const KnnGraph again = load_graph_folder(folder, on_cpu());
  expect_same_bytes(graph, again);
  EXPECT_EQ(again.metric(), graph.metric());
  const GraphFolderInfo info = graph_folder_info(folder);
  EXPECT_EQ(info.rows, 5'000);
  EXPECT_EQ(info.k, 9);
  EXPECT_EQ(info.hashes, hash_graph(again, on_cpu()));
  save_graph_folder(random_graph({300, 4}, 2), folder, on_cpu());  // in its place
  EXPECT_EQ(load_graph_folder(folder, on_cpu()).rows(), 300);
}

TEST(GraphFolder, HashesTellGraphsApart) {
  const KnnGraph one = random_graph({500, 5}, 1);
  EXPECT_EQ(hash_graph(one, on_cpu()), hash_graph(random_graph({500, 5}, 1), on_cpu()));
  EXPECT_NE(hash_graph(one, on_cpu()), hash_graph(random_graph({500, 5}, 2), on_cpu()));
}

TEST(GraphFolder, IsMappedUnderALimitToo) {
  const TemporaryDirectory directory;
  const KnnGraph graph = random_graph({70'000, 9}, 1);  // 7.5 MB
  save_graph_folder(graph, directory.path("g"), on_cpu());
  ResourceOptions options;
  options.device = Device::cpu();
  options.host_memory_limit = 1 << 20;
  const Resources few(options);
  expect_same_bytes(graph, load_graph_folder(directory.path("g"), few));
}

TEST(GraphFolder, IsRemovedWithWhatItHolds) {
  const TemporaryDirectory directory;
  for (const bool others : {false, true}) {
    const std::string folder = directory.path("g");
    save_graph_folder(random_graph({50, 4}, 2), folder, on_cpu());
    std::filesystem::create_directories(folder + "/work");
    std::ofstream(folder + "/work/lock").put(' ');
    if (others) std::ofstream(folder + "/notes.txt").put('x');
    remove_graph_folder(folder);
    EXPECT_FALSE(holds_graph(folder));
    EXPECT_EQ(std::filesystem::exists(folder), others);
    EXPECT_FALSE(std::filesystem::exists(folder + "/work"));
    EXPECT_EQ(std::filesystem::exists(folder + "/notes.txt"), others);
  }
  remove_graph_folder(directory.path("nothing"));
}

TEST(GraphFolder, WithoutAReportThereIsNoGraph) {
  const TemporaryDirectory directory;
  const std::string folder = directory.path("g");
  save_graph_folder(random_graph({500, 5}, 1), folder, on_cpu());
  const std::string text = directory.read("g/report.json");
  const auto with = [&](std::string from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    directory.write("g/report.json", changed);
    return [&] { (void)load_graph_folder(folder, on_cpu()); };
  };
  expect_refusal<Unsupported>(with("\"kith_graph\": 1", "\"kith_graph\": 2"), "is of version 2");
  expect_refusal<CorruptFile>(with("\"rows\": 500", "\"rows\": 501"), "the arrays have 500 x 5");
  expect_refusal<CorruptFile>(with("\"k\": 5", "\"k\": five"), "which is no number");
  expect_refusal<CorruptFile>(with("\"metric\"", "\"metrik\""), "no line for \"metric\"");
  for (size_t cut = 0; cut < text.size(); cut += 7) {
    directory.write("g/report.json", text.substr(0, cut));
    if (text.substr(0, cut).find("distances_xxh3") != std::string::npos) break;
    EXPECT_THROW((void)graph_folder_info(folder), CorruptFile) << cut;
  }
  std::filesystem::remove(directory.path("g/report.json"));
  expect_refusal<InvalidArgument>([&] { (void)load_graph_folder(folder, on_cpu()); }, "holds no report.json");
}

// A build that was killed just before its first step, or just after its last, leaves a lock alone.
TEST(GraphFolder, NothingIsLeftOfWorkThatIsNotThere) {
  const TemporaryDirectory directory;
  const std::string folder = directory.path("g");
  for (const char* steps : {"g/work", "g/work.exact"}) {
    std::filesystem::create_directories(directory.path(steps));
    directory.write(std::string(steps) + "/lock", "");
  }
  save_graph_folder(random_graph({50, 5}, 1), folder, on_cpu());
  EXPECT_FALSE(std::filesystem::exists(directory.path("g/work")));
  EXPECT_FALSE(std::filesystem::exists(directory.path("g/work.exact")));
  std::filesystem::create_directories(directory.path("g/work"));
  directory.write("g/work/lock", "");
  directory.write("g/work/notes.txt", "mine");
  save_graph_folder(random_graph({50, 5}, 2), folder, on_cpu());
  EXPECT_EQ(directory.read("g/work/notes.txt"), "mine");
}

// Under limits from that of the graph in memory down to a tenth of the rows, from one file and from several.
TEST(GraphFolder, TheExactGraphOfFilesIsTheSameUnderAnyLimit) {
  const TemporaryDirectory directory;
  const auto rows = reference::make_floats(reference::Shape::near_duplicates, 1200, 160, 1);  // 768 KB
  for (int64_t part = 0; part < 3; ++part) {
    write_vectors(directory.path("p" + std::to_string(part) + ".npy"), rows.view().slice(400 * part, 400));
  }
  const VectorFile files(directory.path("p*.npy"));
  for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::l1}) {
    const KnnGraphParams params{.k = 7, .metric = metric, .method = GraphMethod::exact};
    const KnnGraph truth = knn_graph(rows.view(), params, on_cpu());
    const GraphHashes expected = hash_graph(truth, on_cpu());
    std::string report;
    for (const int64_t limit : {kNoLimit, int64_t{64} << 20, int64_t{600} << 10}) {
      ResourceOptions options;
      options.device = Device::cpu();
      options.threads = 2;
      options.host_memory_limit = limit;
      const Resources resources(options);
      EXPECT_EQ(knn_graph_folder(files, directory.path("g"), params, resources).method, "exact");
      EXPECT_EQ(graph_folder_info(directory.path("g")).hashes, expected) << limit;
      expect_same_bytes(truth, load_graph_folder(directory.path("g"), resources));
      EXPECT_EQ(resources.host_memory()->used(), 0);
      const std::string written = directory.read("g/report.json");
      EXPECT_EQ(report.empty() ? written : report, written);
      report = written;
    }
  }
}

TEST(GraphFolder, TooSmallALimitIsNamedAndWorks) {
  const TemporaryDirectory directory;
  write_vectors(directory.path("x.npy"), reference::make_floats(reference::Shape::gaussian, 3000, 16, 1).view());
  const VectorFile files(directory.path("x.npy"));
  for (const GraphMethod method : {GraphMethod::exact, GraphMethod::cells}) {
    const auto build = [&](int64_t limit) {
      ResourceOptions options;
      options.device = Device::cpu();
      options.threads = 1;
      options.host_memory_limit = limit;
      return knn_graph_folder(files, directory.path("g"), {.k = 5, .method = method}, Resources(options));
    };
    const auto refused = testing::thrown<OutOfMemory>([&] { (void)build(1000); });
    ASSERT_TRUE(refused);
    EXPECT_FALSE(std::filesystem::exists(directory.path("g/report.json")));
    EXPECT_THROW((void)build(refused->bytes_needed() - 1), OutOfMemory);
    EXPECT_EQ(build(refused->bytes_needed()).method, name_of(method));
    std::filesystem::remove_all(directory.path("g"));
  }
}

TEST(GraphFolder, KeepsLessWhereAsked) {
  const TemporaryDirectory directory;
  const std::string folder = directory.path("g");
  const KnnGraph graph = random_graph({400, 5}, 1);
  save_graph_folder(graph, folder, on_cpu());
  const GraphHashes hashes = graph_folder_info(folder).hashes;
  save_graph_folder(graph, folder, {.int32_ids = true}, on_cpu());
  EXPECT_EQ(graph_folder_info(folder).hashes, hashes);
  EXPECT_LT(std::filesystem::file_size(folder + "/ids.npy"), 400 * 5 * 4 + 256);
  expect_same_bytes(graph, load_graph_folder(folder, on_cpu()));
  save_graph_folder(graph, folder, {.ids_only = true}, on_cpu());
  EXPECT_EQ(graph_folder_info(folder).hashes, (GraphHashes{hashes.ids, 0}));
  EXPECT_FALSE(std::filesystem::exists(folder + "/distances.npy"));
  expect_refusal<InvalidArgument>([&] { (void)load_graph_folder(folder, on_cpu()); }, "ids alone");
}

}  // namespace
}  // namespace kith
