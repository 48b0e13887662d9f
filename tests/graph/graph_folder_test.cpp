// A graph in a folder: arrays that are mapped, a report with their hashes, and what is no such folder.
#include <kith/graph_folder.hpp>

#include <kith/error.hpp>
#include <kith/vector_file.hpp>

#include "core/memory_budget.hpp"
#include "exact/exact_check.hpp"
#include "graph/random_graphs.hpp"
#include "graph/same_graph.hpp"
#include "io/temporary_directory.hpp"
#include "io/thrown.hpp"

#include <gtest/gtest.h>

#include <filesystem>
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

}  // namespace
}  // namespace kith
