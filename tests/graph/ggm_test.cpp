// GGM: shards and merges in memory, and the same bytes from disk, under limits, after crashes, beside damaged steps.
#include <kith/error.hpp>
#include <kith/graph_folder.hpp>
#include <kith/graph_merge.hpp>
#include <kith/graph_of_files.hpp>
#include <kith/knn_graph.hpp>
#include <kith/vector_file.hpp>

#include "core/memory_budget.hpp"
#include "graph/build/ggm/ggm_on_disk.hpp"
#include "graph/build/ggm/ggm_shards.hpp"
#include "graph/kept_graph.hpp"
#include "graph/same_graph.hpp"
#include "io/simulated_disk.hpp"
#include "io/temporary_directory.hpp"
#include "io/thrown.hpp"
#include "reference/data.hpp"
#include "reference/sanitized.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <limits>
#include <string>
#include <variant>
#include <vector>

namespace kith {
namespace {

using reference::Shape;
using testing::Crash;
using testing::expect_refusal;
using testing::KeptGraph;
using testing::Loss;
using testing::SimulatedDisk;
using testing::TemporaryDirectory;
using testing::under_limit;

KnnGraphParams by_ggm(int64_t k, int64_t shards, Metric metric = Metric::l2) {
  return {.k = k, .metric = metric, .method = GraphMethod::ggm, .recall = 0.9, .list_length = 16, .shards = shards};
}

struct GgmTask {
  const VectorFile& x;
  KnnGraphParams params;
  int64_t least() const { return merge_on_disk_footprint(ggm_work(x, params), under_limit(kNoLimit)).host; }
  GraphReport run(SimulatedDisk& disk, GraphSink& sink, int64_t limit, bool keep = false) const {
    return merge_on_disk(ggm_work(x, params), {.disk = disk, .folder = "w", .keep = keep}, sink, under_limit(limit));
  }
};

VectorFile written(const TemporaryDirectory& directory, const MatrixView& rows) {
  write_vectors(directory.path("x.npy"), rows);
  return VectorFile(directory.path("x.npy"));
}

TEST(Ggm, IsTheMergeOfTheGraphsOfShards) {
  const auto rows = reference::make_floats(Shape::gaussian, 1001, 12, 1);
  for (const int64_t shards : {1, 2, 3}) {
    const KnnGraphParams params = by_ggm(6, shards);
    std::vector<GraphPart> parts;
    const GgmShards cut(rows.view().rows(), params);
    ASSERT_EQ(cut.count, shards);
    ASSERT_EQ(cut.first(shards), 1001);
    for (int64_t shard = 0; shard < shards; ++shard) {
      const MatrixView part = rows.view().slice(cut.first(shard), cut.size(shard));
      parts.push_back({knn_graph(part, shard_params(params), under_limit(kNoLimit)), part});
    }
    const KnnGraph merged = merge_graphs(parts, shard_merge_params(params), under_limit(kNoLimit));
    const KnnGraph graph = knn_graph(rows.view(), params, under_limit(kNoLimit));
    expect_same_bytes(merged, graph);
    EXPECT_EQ(graph.report().method, "ggm");
    EXPECT_EQ(std::get<int64_t>(graph.report().parameters.back().value), shards);
    EXPECT_GT(graph.report().recall->recall, 0.8);
  }
}

TEST(Ggm, ShardsFollowFromRowsAndK) {
  EXPECT_EQ(GgmShards(2'500'000, {.k = 10, .method = GraphMethod::ggm}).count, 1);
  EXPECT_EQ(GgmShards(100'000'000, {.k = 10, .method = GraphMethod::ggm}).count, 40);
  EXPECT_EQ(GgmShards(100'000'000, {.k = 100, .method = GraphMethod::ggm}).count, 80);
  EXPECT_EQ(GgmShards(7, by_ggm(3, 100)).count, 7);
}

TEST(Ggm, ParametersOfOthersAreRefused) {
  EXPECT_THROW((KnnGraphParams{.method = GraphMethod::cells, .shards = 2}.validate()), InvalidArgument);
  EXPECT_THROW((KnnGraphParams{.method = GraphMethod::ggm, .cells = 2}.validate()), InvalidArgument);
  EXPECT_THROW((KnnGraphParams{.method = GraphMethod::ggm, .start = GraphStart::random}.validate()), InvalidArgument);
  EXPECT_THROW((KnnGraphParams{.method = GraphMethod::ggm, .shards = 0}.validate()), InvalidArgument);
  EXPECT_THROW((KnnGraphParams{.method = GraphMethod::ggm, .recall = 1}.validate()), InvalidArgument);
  EXPECT_EQ(parse_graph_method("ggm"), GraphMethod::ggm);
}

TEST(Ggm, FromDiskGivesTheBytesOfMemory) {
  const TemporaryDirectory directory;
  const auto rows = reference::make_floats(Shape::gaussian, 1300, 12, 1);
  const VectorFile x = written(directory, rows.view());
  for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::l1}) {
    for (const int64_t shards : {2, 5}) {
      const GgmTask task{x, by_ggm(6, shards, metric)};
      const KnnGraph truth = knn_graph(rows.view(), task.params, under_limit(kNoLimit));
      for (const int64_t limit : {task.least(), int64_t{1} << 30}) {
        SimulatedDisk disk;
        KeptGraph found;
        const GraphReport report = task.run(disk, found, limit);
        found.expect(truth);
        EXPECT_EQ(report.method, "ggm");
        EXPECT_EQ(report.recall->recall, truth.report().recall->recall);
        EXPECT_EQ(report.reached, truth.report().reached);
        EXPECT_TRUE(disk.list("w").empty());
      }
      SimulatedDisk disk;
      KeptGraph found;
      EXPECT_THROW(task.run(disk, found, task.least() - 1), OutOfMemory);
    }
  }
}

// Lists are read, offered and written by sections of 1,024 rows, each on some thread.
TEST(Ggm, ShardsOfSeveralSectionsOnAnyNumberOfThreads) {
  const TemporaryDirectory directory;
  const auto rows = reference::make_floats(Shape::gaussian, 5100, 6, 1);
  const VectorFile x = written(directory, rows.view());
  const KnnGraphParams params = by_ggm(6, 2);
  const KnnGraph truth = knn_graph(rows.view(), params, under_limit(kNoLimit));
  for (const int threads : {1, 2, 5}) {
    const int64_t least = merge_on_disk_footprint(ggm_work(x, params), under_limit(kNoLimit, threads)).host;
    SimulatedDisk disk;
    KeptGraph found;
    merge_on_disk(ggm_work(x, params), {.disk = disk, .folder = "w"}, found, under_limit(least, threads));
    found.expect(truth);
  }
}

TEST(Ggm, ShardsMayBeSmallerThanK) {
  const TemporaryDirectory directory;
  const auto rows = reference::make_floats(Shape::gaussian, 40, 5, 1);
  const VectorFile x = written(directory, rows.view());
  const GgmTask task{x, by_ggm(6, 9)};
  SimulatedDisk disk;
  KeptGraph found;
  task.run(disk, found, kNoLimit);
  found.expect(knn_graph(rows.view(), task.params, under_limit(kNoLimit)));
}

// Devices are dealt shards and pairs where each has room for a pair; else the first does all, and says so.
TEST(Ggm, SeveralDevicesFromDiskGiveTheBytesOfMemory) {
  const TemporaryDirectory directory;
  const auto rows = reference::make_floats(Shape::near_duplicates, 1300, 12, 1);
  const VectorFile x = written(directory, rows.view());
  constexpr int64_t kRoomy = int64_t{64} << 20;
  for (const int64_t shards : {2, 5}) {
    const GgmTask task{x, by_ggm(6, shards)};
    const KnnGraph truth = knn_graph(rows.view(), task.params, under_limit(kNoLimit));
    const int64_t least = merge_on_disk_footprint(ggm_work(x, task.params), under_limit(kNoLimit, 3)).host;
    for (const int64_t limit : {least, 2 * least, 4 * least, 8 * least, kRoomy, kNoLimit}) {
      for (const char* devices : {"cpu/2", "cpu/3"}) {
        ResourceOptions options;
        options.devices = parse_devices(devices);
        options.threads = 3;
        options.host_memory_limit = limit;
        bool by_first = false;
        options.log = [&](LogLevel, std::string_view text) {
          by_first = by_first || text.find("does all of it") != std::string_view::npos;
        };
        KeptGraph found;
        const GraphReport report = merge_on_disk(ggm_work(x, task.params), {real_disk(), directory.path("w")}, found,
                                                 Resources(options));
        found.expect(truth);
        // Two parts of fewer threads each may fit the limit of one with all.
        if (limit == least && std::string(devices) == "cpu/3") {
          EXPECT_TRUE(by_first) << shards << " shards";
        }
        if (limit >= kRoomy) {
          EXPECT_FALSE(by_first) << devices << ", " << shards << " shards, limit " << limit;
        }
        EXPECT_EQ(report.recall->recall, truth.report().recall->recall);
        EXPECT_EQ(report.reached, truth.report().reached);
      }
    }
  }
}

// Lists that are lost are made again, by any number of devices; steps that are there are used.
TEST(Ggm, OtherDevicesGoOn) {
  const TemporaryDirectory directory;
  const auto rows = reference::make_floats(Shape::gaussian, 900, 8, 1);
  const VectorFile x = written(directory, rows.view());
  const KnnGraphParams params = by_ggm(5, 4);
  const KnnGraph truth = knn_graph(rows.view(), params, under_limit(kNoLimit));
  const auto run = [&](const char* devices) {
    ResourceOptions options;
    options.devices = parse_devices(devices);
    options.threads = 3;
    KeptGraph found;
    merge_on_disk(ggm_work(x, params), {real_disk(), directory.path("w"), true}, found, Resources(options));
    found.expect(truth);
  };
  run("cpu/3");
  for (const char* devices : {"cpu/2", "cpu", "cpu/5"}) {
    std::filesystem::remove(directory.path("w/lists-1"));
    std::filesystem::remove(directory.path("w/graph-2"));
    std::filesystem::remove(directory.path("w/pair-0-3"));
    run(devices);
  }
}

// The first row that is refused is named, whichever device met it.
TEST(Ggm, SeveralDevicesRefuseTheRowThatOneRefuses) {
  const TemporaryDirectory directory;
  auto rows = reference::make_floats(Shape::gaussian, 900, 8, 1);
  rows.row(400)[3] = std::numeric_limits<float>::quiet_NaN();
  rows.row(880)[3] = std::numeric_limits<float>::quiet_NaN();
  const VectorFile x = written(directory, rows.view());
  for (const char* devices : {"cpu", "cpu/2", "cpu/3"}) {
    ResourceOptions options;
    options.devices = parse_devices(devices);
    options.threads = 3;
    KeptGraph found;
    expect_refusal<InvalidArgument>(
        [&] { merge_on_disk(ggm_work(x, by_ggm(5, 4)), {real_disk(), directory.path("w")}, found, Resources(options)); },
        "row 400");
  }
}

TEST(Ggm, GoesOnAfterACrashAtAnyCall) {
  const TemporaryDirectory directory;
  const auto rows = reference::make_floats(Shape::gaussian, 300, 8, 1);
  const VectorFile x = written(directory, rows.view());
  const GgmTask task{x, by_ggm(5, 3)};
  const KnnGraph truth = knn_graph(rows.view(), task.params, under_limit(kNoLimit));
  int64_t crashes = 0;
  for (int64_t at = 0;; at += reference::fewer_if_sanitized(7, 31)) {
    SimulatedDisk disk;
    disk.set_fault({.at = at, .code = 0, .kind = {}});
    KeptGraph found;
    bool crashed = false;
    try {
      task.run(disk, found, kNoLimit);
    } catch (const Crash&) {
      crashed = true;
    }
    if (!crashed) break;
    ++crashes;
    disk.crash(at % 2 == 0 ? Loss::all_that_is_not_synced : Loss::bytes_that_are_not_synced);
    task.run(disk, found, task.least());
    found.expect(truth);
    EXPECT_TRUE(disk.list("w").empty());
  }
  EXPECT_GT(crashes, 3);
}

TEST(Ggm, DamagedStepsAreMadeAgain) {
  const TemporaryDirectory directory;
  const auto rows = reference::make_floats(Shape::gaussian, 300, 8, 1);
  const VectorFile x = written(directory, rows.view());
  const GgmTask task{x, by_ggm(5, 3)};
  const KnnGraph truth = knn_graph(rows.view(), task.params, under_limit(kNoLimit));
  SimulatedDisk disk;
  KeptGraph found;
  task.run(disk, found, kNoLimit, true);
  for (const std::string& name : disk.list("w")) {
    if (name == "manifest" || name == "lock") continue;
    for (const double where : {0.0, 0.5, 1.0}) {
      if (!disk.exists("w/" + name)) continue;  // a graph whose pairs are all merged is not made again
      std::string bytes = disk.content("w/" + name);
      bytes[static_cast<size_t>(where * static_cast<double>(bytes.size() - 1))] ^= 4;
      disk.set_content("w/" + name, bytes);
      task.run(disk, found, kNoLimit, true);
      found.expect(truth);
    }
  }
}

// Between the pairs of one run, where nobody looks over all steps again.
TEST(Ggm, ListsThatAreDamagedBetweenTwoPairsHearOfTheEarlierOnesAgain) {
  const TemporaryDirectory directory;
  const auto rows = reference::make_floats(Shape::gaussian, 400, 8, 1);
  const VectorFile x = written(directory, rows.view());
  const GgmTask task{x, by_ggm(5, 4)};
  const KnnGraph truth = knn_graph(rows.view(), task.params, under_limit(kNoLimit));
  for (const std::string lists : {"lists-0", "lists-1", "lists-2"}) {
    for (const std::string after : {"pair-0-1", "pair-0-2", "pair-1-2"}) {
      for (const bool at_the_end : {true, false}) {
        SimulatedDisk disk;
        bool damaged = false;
        disk.set_watch([&] {
          if (damaged || !disk.exists("w/" + after) || !disk.exists("w/" + lists)) return;
          damaged = true;
          std::string bytes = disk.content("w/" + lists);
          (at_the_end ? bytes.back() : bytes.front()) ^= 4;
          disk.set_content("w/" + lists, bytes);
        });
        KeptGraph found;
        task.run(disk, found, kNoLimit);
        EXPECT_TRUE(damaged);
        found.expect(truth);
      }
    }
  }
}

TEST(Ggm, AStepInThePlaceOfAnotherIsMadeAgain) {
  const TemporaryDirectory directory;
  const auto rows = reference::make_floats(Shape::gaussian, 400, 8, 1);
  const VectorFile x = written(directory, rows.view());
  const GgmTask task{x, by_ggm(5, 4)};  // shards of the same size
  SimulatedDisk disk;
  KeptGraph found;
  task.run(disk, found, kNoLimit, true);
  for (const std::string kind : {"lists-", "graph-"}) {
    const std::string first = disk.content("w/" + kind + "0");
    disk.set_content("w/" + kind + "0", disk.content("w/" + kind + "1"));
    disk.set_content("w/" + kind + "1", first);
    disk.remove("w/pair-0-1");
    task.run(disk, found, kNoLimit, true);
    found.expect(knn_graph(rows.view(), task.params, under_limit(kNoLimit)));
  }
}

TEST(Ggm, ErrorsOfTheDiskAndOtherVectorsAreTold) {
  const TemporaryDirectory directory;
  auto rows = reference::make_floats(Shape::gaussian, 300, 8, 1);
  SimulatedDisk disk;
  KeptGraph found;
  {
    const VectorFile x = written(directory, rows.view());
    const GgmTask task{x, by_ggm(5, 3)};
    disk.set_capacity(3000);
    const auto full = testing::thrown<IoError>([&] { task.run(disk, found, kNoLimit); });
    ASSERT_TRUE(full);
    EXPECT_EQ(full->code(), ENOSPC);
    disk.set_capacity(1 << 20);
    task.run(disk, found, kNoLimit, true);
    found.expect(knn_graph(rows.view(), task.params, under_limit(kNoLimit)));
    expect_refusal<InvalidArgument>([&] { GgmTask{x, by_ggm(5, 4)}.run(disk, found, kNoLimit); },
                                    "shards is 4, and was 3");
  }
  rows.row(250)[3] += 1;
  {
    const VectorFile changed = written(directory, rows.view());
    expect_refusal<InvalidArgument>([&] { GgmTask{changed, by_ggm(5, 3)}.run(disk, found, kNoLimit); },
                                    "the vectors have changed since this work began");
  }
  rows.row(250)[3] = std::numeric_limits<float>::quiet_NaN();
  const VectorFile bad = written(directory, rows.view());
  SimulatedDisk other;
  expect_refusal<InvalidArgument>([&] { GgmTask{bad, by_ggm(5, 3)}.run(other, found, kNoLimit); }, "row 250");
  expect_refusal<InvalidArgument>([&] { (void)knn_graph(rows.view(), by_ggm(5, 3), under_limit(kNoLimit)); }, "row 250");
}

TEST(Ggm, WhatIsOnTheDiskAlreadyIsNotAskedForAgain) {
  const TemporaryDirectory directory;
  const auto rows = reference::make_floats(Shape::gaussian, 300, 8, 1);
  const VectorFile x = written(directory, rows.view());
  const GgmTask task{x, by_ggm(5, 3)};
  const KnnGraph truth = knn_graph(rows.view(), task.params, under_limit(kNoLimit));
  int64_t room = 10'000;
  for (bool enough = false; !enough;) {
    SimulatedDisk disk;
    disk.set_capacity(room);
    KeptGraph found;
    try {
      task.run(disk, found, kNoLimit);
      enough = true;
    } catch (const IoError& full) {
      EXPECT_EQ(full.code(), ENOSPC);
      room += room / 50;
    }
  }
  for (int64_t rename = 0;; ++rename) {
    SimulatedDisk disk;
    disk.set_capacity(room);
    disk.set_fault({.at = rename, .code = 0, .kind = testing::DiskCall::rename});
    KeptGraph found;
    try {
      task.run(disk, found, kNoLimit);
      break;
    } catch (const Crash&) {
      disk.crash(Loss::bytes_that_are_not_synced);
    }
    task.run(disk, found, kNoLimit);
    found.expect(truth);
  }
}

TEST(Ggm, AFolderUnderALimitHasTheHashOfMemory) {
  const TemporaryDirectory directory;
  const auto rows = reference::make_floats(Shape::gaussian, 4000, 32, 1);
  const VectorFile x = written(directory, rows.view());
  const KnnGraphParams params = by_ggm(6, 8);
  knn_graph_folder(x, directory.path("memory"), params, under_limit(kNoLimit));
  const int64_t least = merge_on_disk_footprint(ggm_work(x, params), under_limit(kNoLimit)).host;
  knn_graph_folder(x, directory.path("disk"), params, under_limit(least));
  EXPECT_EQ(graph_folder_info(directory.path("disk")).hashes, graph_folder_info(directory.path("memory")).hashes);
  EXPECT_FALSE(std::filesystem::exists(directory.path("disk/work")));
  GraphWork part;
  part.part = {1, 2};
  expect_refusal<Unsupported>([&] { knn_graph_folder(x, directory.path("disk"), params, part, under_limit(least)); },
                              "by the method cells");
}

}  // namespace
}  // namespace kith
