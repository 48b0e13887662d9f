// Graphs that do not fit in memory, merged from disk: the bytes of memory, in blocks of any size, under any limit, after
// crashes at any call, beside damaged steps.
#include <kith/error.hpp>
#include <kith/graph_folder.hpp>
#include <kith/graph_merge.hpp>
#include <kith/graph_of_files.hpp>
#include <kith/knn_graph.hpp>
#include <kith/vector_file.hpp>

#include "core/within_limits.hpp"
#include "graph/build/ggm/ggm_on_disk.hpp"
#include "graph/build/ggm/shard_work.hpp"
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
#include <fstream>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kith {
namespace {

using reference::Shape;
using testing::Crash;
using testing::expect_refusal;
using testing::KeptGraph;
using testing::SimulatedDisk;
using testing::TemporaryDirectory;
using testing::under_limit;

// Parts of some rows, each in a file of its own, with their graphs.
class PartsOfFiles {
 public:
  PartsOfFiles(const TemporaryDirectory& directory, const MatrixView& rows, const std::vector<int64_t>& sizes, int64_t k,
               Metric metric = Metric::l2) {
    int64_t first = 0;
    for (const int64_t size : sizes) {
      const MatrixView part = rows.slice(first, size);
      const std::string path = directory.path("x" + std::to_string(parts_.size()) + ".npy");
      write_vectors(path, part);
      const KnnGraph graph = knn_graph(part, {.k = k, .metric = metric, .method = GraphMethod::exact}, under_limit(kNoLimit));
      views_.push_back({graph, part});
      parts_.push_back({graph, VectorFile(path)});
      first += size;
    }
  }

  const std::vector<GraphOfFile>& files() const { return parts_; }
  KnnGraph truth() const { return truth(under_limit(kNoLimit)); }
  KnnGraph truth(const Resources& resources) const { return merge_graphs(views_, params, resources); }
  ShardWork work() const { return merge_work(parts_, params); }
  int64_t least(int64_t block, int threads = 2) const {
    return merge_on_disk_footprint(work(), under_limit(kNoLimit, threads), block).host;
  }
  // The last part's rows are others now.
  void replace_last(const MatrixView& rows, const std::string& path) {
    write_vectors(path, rows);
    parts_.back().x = VectorFile(path);
  }
  GraphReport run(SimulatedDisk& disk, GraphSink& sink, int64_t limit, int64_t block, bool keep = false) const {
    return merge_on_disk(work(), {.disk = disk, .folder = "w", .keep = keep, .most_rows = block}, sink, under_limit(limit));
  }

  GraphMergeParams params = {.recall = 0.9, .list_length = 16};

 private:
  std::vector<GraphPart> views_;
  std::vector<GraphOfFile> parts_;
};

TEST(MergeOnDisk, GivesTheBytesOfMemory) {
  for (const Shape shape : {Shape::gaussian, Shape::near_duplicates, Shape::all_equal}) {
    const auto rows = reference::make_floats(shape, 700, 12, 1);
    for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine, Metric::l1}) {
      for (const int64_t first : {1, 350}) {
        SCOPED_TRACE(std::string(name_of(metric)) + " " + std::to_string(first));
        const TemporaryDirectory directory;
        const PartsOfFiles parts(directory, rows.view(), {first, 700 - first}, 6, metric);
        const KnnGraph truth = parts.truth();
        for (const int64_t block : {97, 699}) {
          SimulatedDisk disk;
          KeptGraph found;
          const GraphReport report = parts.run(disk, found, parts.least(block), block);
          found.expect(truth);
          EXPECT_EQ(report.recall->recall, truth.report().recall->recall);
          EXPECT_EQ(report.recall->standard_error, truth.report().recall->standard_error);
          EXPECT_EQ(report.reached, truth.report().reached);
          EXPECT_TRUE(disk.list("w").empty());
        }
        SimulatedDisk disk;
        KeptGraph found;
        EXPECT_THROW(parts.run(disk, found, parts.least(97) - 1, 97), OutOfMemory);
      }
    }
  }
}

// Every metric that graphs are merged by, and every dtype.
TEST(MergeOnDisk, GivesTheBytesOfMemoryByAnyMetricAndDtype) {
  for (const Metric metric : {Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::cosine, Metric::l1, Metric::linf,
                              Metric::chi_square}) {
    SCOPED_TRACE(std::string(name_of(metric)));
    auto rows = reference::make_floats(Shape::gaussian, 260, 20, 3);
    for (int64_t i = 0; i < 260; ++i) {
      for (int64_t c = 0; c < 20; ++c) rows.row(i)[c] = std::abs(rows.row(i)[c]);
    }
    const TemporaryDirectory directory;
    const PartsOfFiles parts(directory, rows.view(), {100, 160}, 4, metric);
    SimulatedDisk disk;
    KeptGraph found;
    parts.run(disk, found, kNoLimit, 50);
    found.expect(parts.truth());
  }
  const auto bytes = reference::make_bytes(400, 33, 2);
  for (const Metric metric : {Metric::l2, Metric::hamming}) {
    const TemporaryDirectory directory;
    const PartsOfFiles parts(directory, bytes.view(), {150, 250}, 5, metric);
    SimulatedDisk disk;
    KeptGraph found;
    parts.run(disk, found, kNoLimit, 64);
    found.expect(parts.truth());
  }
}

TEST(MergeOnDisk, PartsMayHaveFewerRowsThanK) {
  const auto rows = reference::make_floats(Shape::gaussian, 130, 5, 1);
  for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{{3, 127}, {127, 3}, {1, 1}, {40, 1, 60}, {2, 3, 5}}) {
    const TemporaryDirectory directory;
    PartsOfFiles parts(directory, rows.view(), sizes, 9);
    for (const int64_t length : {9, 12, 64}) {  // with 9 and 12 more neighbours than half of a list are put back
      parts.params.list_length = length;
      SimulatedDisk disk;
      KeptGraph found;
      parts.run(disk, found, kNoLimit, 20);
      found.expect(parts.truth());
    }
  }
}

// Rounds that end by their number, by little change and by the recall.
TEST(MergeOnDisk, ParametersOfRoundsHoldFromDiskToo) {
  const auto rows = reference::make_floats(Shape::gaussian, 900, 16, 1);
  const TemporaryDirectory directory;
  PartsOfFiles parts(directory, rows.view(), {400, 500}, 10);
  for (const GraphMergeParams& params : std::vector<GraphMergeParams>{
           {.recall = 0.999, .seed = 7, .samples = 3, .list_length = 16, .iterations = 1},
           {.recall = 0.999, .samples = 5, .list_length = 24, .iterations = 4},
           {.recall = 0.999, .list_length = 16, .delta = 0.2},
           {.recall = 0.5},
           {.recall = 0.99}}) {
    parts.params = params;
    SimulatedDisk disk;
    KeptGraph found;
    const GraphReport report = parts.run(disk, found, kNoLimit, 128);
    found.expect(parts.truth());
    EXPECT_EQ(report.reached, parts.truth().report().reached);
  }
}

void expect_same_rounds(const GraphReport& truth, const GraphReport& found) {
  ASSERT_EQ(found.rounds.size(), truth.rounds.size());
  for (size_t i = 0; i < truth.rounds.size(); ++i) {
    EXPECT_EQ(found.rounds[i].recall, truth.rounds[i].recall);
    EXPECT_EQ(found.rounds[i].updates, truth.rounds[i].updates);
    EXPECT_EQ(found.rounds[i].comparisons, truth.rounds[i].comparisons);
    EXPECT_NEAR(found.rounds[i].phi, truth.rounds[i].phi, 1e-9 * truth.rounds[i].phi);  // added in another order
  }
}

TEST(MergeOnDisk, RoundsAreReportedAndAMissedRecallIsToldAsInMemory) {
  const auto rows = reference::make_floats(Shape::gaussian, 900, 16, 1);
  const TemporaryDirectory directory;
  PartsOfFiles parts(directory, rows.view(), {400, 500}, 10);
  parts.params = {.recall = 0.9999, .samples = 3, .list_length = 16, .iterations = 3};
  std::vector<std::string> told;
  const auto log = [&](LogLevel level, std::string_view text) {
    if (level == LogLevel::warning) told.emplace_back(text);
  };
  const KnnGraph truth = parts.truth(under_limit(kNoLimit).with_log(log));
  ASSERT_EQ(truth.report().rounds.size(), 3u);
  EXPECT_GT(truth.report().rounds[0].comparisons, 0);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_NE(told[0].find("below the 0.9999 asked for"), std::string::npos);
  for (const int64_t block : {int64_t{128}, INT64_MAX}) {  // from disk, and in memory
    SimulatedDisk disk;
    KeptGraph found;
    const GraphReport report = merge_on_disk(parts.work(), {.disk = disk, .folder = "w", .most_rows = block}, found,
                                             under_limit(kNoLimit).with_log(log));
    expect_same_rounds(truth.report(), report);
  }
  EXPECT_EQ(told, std::vector<std::string>(3, told[0]));
}

// The steps of a round go when the next begins, though the process was killed between its mark and their end.
TEST(MergeOnDisk, AnEndedRoundLeavesNoStepsAfterACrash) {
  const auto rows = reference::make_floats(Shape::gaussian, 150, 8, 1);
  const TemporaryDirectory directory;
  PartsOfFiles parts(directory, rows.view(), {60, 90}, 5);
  parts.params = {.recall = 0.9999, .samples = 4, .list_length = 9, .iterations = 3};
  const KnnGraph truth = parts.truth();
  ASSERT_EQ(truth.report().rounds.size(), 3u);
  SimulatedDisk disk;
  KeptGraph found;
  bool crashed = false;
  disk.set_watch([&] {
    if (!crashed && disk.exists("w/join-0-1-round-1")) {
      crashed = true;
      throw Crash();
    }
  });
  EXPECT_THROW(parts.run(disk, found, kNoLimit, 60), Crash);
  disk.crash(testing::Loss::bytes_that_are_not_synced);
  ASSERT_TRUE(disk.exists("w/join-0-1-lists-0-0"));
  ASSERT_TRUE(disk.exists("w/join-0-1-offers-0-0"));
  bool began_another = false;
  disk.set_watch([&] {
    if (!disk.exists("w/join-0-1-names-1-0")) return;
    began_another = true;
    EXPECT_FALSE(disk.exists("w/join-0-1-lists-0-0"));
    EXPECT_FALSE(disk.exists("w/join-0-1-offers-0-0"));
  });
  expect_same_rounds(truth.report(), parts.run(disk, found, kNoLimit, 60));
  EXPECT_TRUE(began_another);
  found.expect(truth);
}

TEST(MergeOnDisk, ManyPartsOnAnyNumberOfThreads) {
  const auto rows = reference::make_floats(Shape::gaussian, 1500, 8, 1);
  const TemporaryDirectory directory;
  const PartsOfFiles parts(directory, rows.view(), {500, 3, 600, 397}, 6);
  const KnnGraph truth = parts.truth();
  for (const int threads : {1, 2, 5}) {
    SimulatedDisk disk;
    KeptGraph found;
    merge_on_disk(parts.work(), {.disk = disk, .folder = "w", .most_rows = 200}, found,
                  under_limit(parts.least(200, threads), threads));
    found.expect(truth);
  }
}

// Pairs that fit in memory are dealt to all devices; where one does not, the first merges all, from disk where it must.
// Either goes on with what the other has left.
TEST(MergeOnDisk, SeveralDevicesGiveTheBytesOfOne) {
  const auto rows = reference::make_floats(Shape::near_duplicates, 1500, 8, 1);
  const TemporaryDirectory directory;
  const PartsOfFiles parts(directory, rows.view(), {500, 3, 600, 397}, 6);
  const KnnGraph truth = parts.truth();
  const std::string work = directory.path("w");
  const auto run = [&](const char* devices, int64_t block, const std::string& until) {
    ResourceOptions options;
    options.devices = parse_devices(devices);
    options.threads = 3;
    options.interrupted = [&] { return !until.empty() && std::filesystem::exists(work + "/" + until); };
    KeptGraph found;
    merge_on_disk(parts.work(), {.disk = real_disk(), .folder = work, .most_rows = block}, found, Resources(options));
    found.expect(truth);
  };
  for (const int64_t block : {int64_t{200}, INT64_MAX}) {
    for (const char* devices : {"cpu/2", "cpu/3", "cpu/5"}) run(devices, block, "");
  }
  for (const std::string until : {"graph-0", "graph-3", "lists-1", "pair-0-1"}) {
    for (const auto& [before, after] : {std::pair("cpu/3", "cpu"), std::pair("cpu", "cpu/2"), std::pair("cpu/2", "cpu/3")}) {
      EXPECT_THROW(run(before, INT64_MAX, until), Cancelled);
      run(after, INT64_MAX, "");
    }
  }
  for (const std::string until : {"join-0-2-control", "join-0-2-round-0", "lists-2"}) {
    EXPECT_THROW(run("cpu/3", 200, until), Cancelled) << until;
    run("cpu/3", INT64_MAX, "");
    EXPECT_THROW(run("cpu", 200, until), Cancelled) << until;
    run("cpu/2", 200, "");
  }
  EXPECT_TRUE(std::filesystem::is_empty(work));
}

// A damaged step is made again, whichever device meets it.
TEST(MergeOnDisk, SeveralDevicesMakeDamagedStepsAgain) {
  const auto rows = reference::make_floats(Shape::gaussian, 900, 8, 1);
  const TemporaryDirectory directory;
  const PartsOfFiles parts(directory, rows.view(), {300, 200, 400}, 6);
  const KnnGraph truth = parts.truth();
  const std::string work = directory.path("w");
  const auto run = [&](bool stops) {
    ResourceOptions options;
    options.devices = parse_devices("cpu/3");
    options.threads = 3;
    options.interrupted = [&] { return stops && std::filesystem::exists(work + "/pair-0-1"); };
    KeptGraph found;
    merge_on_disk(parts.work(), {.disk = real_disk(), .folder = work, .keep = true}, found, Resources(options));
    found.expect(truth);
  };
  for (const std::string step : {"graph-0", "graph-2", "lists-0", "lists-1"}) {
    SCOPED_TRACE(step);
    std::filesystem::remove_all(work);
    EXPECT_THROW(run(true), Cancelled);
    const std::string path = work + "/" + step;
    ASSERT_TRUE(std::filesystem::exists(path));
    {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      const auto middle = static_cast<std::streamoff>(std::filesystem::file_size(path) / 2);
      file.seekg(middle);
      const auto byte = static_cast<char>(file.get() ^ 4);
      file.seekp(middle);
      file.put(byte);
    }
    run(false);
  }
}

TEST(MergeOnDisk, GoesOnAfterACrashAtAnyCallWithAnotherLimit) {
  const auto rows = reference::make_floats(Shape::gaussian, 150, 8, 1);
  const TemporaryDirectory directory;
  PartsOfFiles parts(directory, rows.view(), {60, 90}, 5);
  parts.params = {.recall = 0.999, .samples = 4, .list_length = 9, .iterations = 2};
  const KnnGraph truth = parts.truth();
  const int64_t crashes = testing::expect_graph_after_crashes(
      reference::fewer_if_sanitized(19, 97), truth,
      [&](SimulatedDisk& disk, KeptGraph& found) { parts.run(disk, found, kNoLimit, 60); },
      [&](SimulatedDisk& disk, KeptGraph& found, int64_t call) {
        // In the same blocks under the least limit, or in memory.
        expect_same_rounds(truth.report(), parts.run(disk, found, call % 3 == 0 ? kNoLimit : parts.least(60),
                                                     call % 3 == 0 ? INT64_MAX : 60));
      });
  EXPECT_GT(crashes, 20);
}

TEST(MergeOnDisk, DamagedAndExchangedStepsAreMadeAgain) {
  const auto rows = reference::make_floats(Shape::gaussian, 150, 8, 1);
  const TemporaryDirectory directory;
  PartsOfFiles parts(directory, rows.view(), {60, 90}, 5);
  parts.params = {.recall = 0.999, .samples = 4, .list_length = 9, .iterations = 2};
  const KnnGraph truth = parts.truth();
  // Each step as soon as it is there, which is damaged before anybody reads it.
  for (const std::string step : {"graph-0", "graph-1", "join-0-1-control", "join-0-1-lists-0-1", "join-0-1-round-0",
                                 "join-0-1-names-0-0", "join-0-1-names-1-2", "join-0-1-offers-0-2", "join-0-1-lists-1-0",
                                 "join-0-1-round-1", "join-0-1-lists-2-2", "join-0-1-whole-0-1", "lists-0"}) {
    for (const double where : {0.0, 0.5, 1.0}) {
      SCOPED_TRACE(step + " " + std::to_string(where));
      SimulatedDisk disk;
      bool damaged = false;
      disk.set_watch([&] {
        if (damaged || !disk.exists("w/" + step)) return;
        damaged = true;
        std::string bytes = disk.content("w/" + step);
        bytes[static_cast<size_t>(where * static_cast<double>(bytes.size() - 1))] ^= 4;
        disk.set_content("w/" + step, bytes);
      });
      KeptGraph found;
      parts.run(disk, found, kNoLimit, 60);
      EXPECT_TRUE(damaged);
      found.expect(truth);
    }
  }
}

TEST(MergeOnDisk, AFullDiskIsToldAndGoesOn) {
  const auto rows = reference::make_floats(Shape::gaussian, 150, 8, 1);
  const TemporaryDirectory directory;
  PartsOfFiles parts(directory, rows.view(), {60, 90}, 5);
  const KnnGraph truth = parts.truth();
  SimulatedDisk disk;
  KeptGraph found;
  bool done = false;
  for (int64_t capacity = 2000; !done; capacity += capacity / 4) {
    disk.set_capacity(capacity);
    try {
      parts.run(disk, found, kNoLimit, 60);
      done = true;
    } catch (const IoError& full) {
      EXPECT_EQ(full.code(), ENOSPC);
    }
  }
  found.expect(truth);
  EXPECT_TRUE(disk.list("w").empty());
}

TEST(MergeOnDisk, WhatCannotBeComparedIsRefusedByItsPart) {
  auto rows = reference::make_floats(Shape::gaussian, 150, 8, 1);
  const TemporaryDirectory directory;
  PartsOfFiles parts(directory, rows.view(), {60, 90}, 5);
  rows.row(70)[3] = std::numeric_limits<float>::quiet_NaN();
  parts.replace_last(rows.view().slice(60, 90), directory.path("nan.npy"));
  SimulatedDisk disk;
  KeptGraph found;
  expect_refusal<InvalidArgument>([&] { parts.run(disk, found, kNoLimit, 60); }, "row 10");
  const auto others = reference::make_floats(Shape::gaussian, 90, 8, 9);
  parts.replace_last(others.view(), directory.path("others.npy"));
  SimulatedDisk other;
  expect_refusal<InvalidArgument>([&] { parts.run(other, found, kNoLimit, 60); }, "graph 2 says that rows");
}

// Through the public call, under limits from what memory takes down to the least.
TEST(MergeOnDisk, AFolderUnderAnyLimitHasTheHashOfMemory) {
  const auto rows = reference::make_floats(Shape::gaussian, 14'000, 8, 1);
  const TemporaryDirectory directory;
  const PartsOfFiles parts(directory, rows.view(), {5'000, 9'000}, 8);
  const GraphMergeParams params{.recall = 0.9, .list_length = 32};
  merge_graphs_folder(parts.files(), directory.path("memory"), params, {}, under_limit(kNoLimit));
  const GraphHashes hashes = graph_folder_info(directory.path("memory")).hashes;
  int64_t least = 0;
  try {
    merge_graphs_folder(parts.files(), directory.path("none"), params, {}, under_limit(1 << 20));
  } catch (const OutOfMemory& refused) {
    least = refused.bytes_needed();
  }
  ASSERT_GT(least, 0);
  const int64_t in_memory = footprint_of_call(under_limit(kNoLimit), [&](const Resources& counting) {
                              const MatrixBuffer x(DType::f32, 14'000, 8, "the vectors", counting);
                              merge_graphs({{parts.files()[0].graph, x.view().slice(0, 5'000)},
                                            {parts.files()[1].graph, x.view().slice(5'000, 9'000)}},
                                           params, counting);
                            }).host;
  EXPECT_LT(least, in_memory);
  for (const int64_t limit : {least, in_memory - 1, in_memory + (1 << 20)}) {
    SCOPED_TRACE(limit);
    merge_graphs_folder(parts.files(), directory.path("disk"), params, {}, under_limit(limit));
    EXPECT_EQ(graph_folder_info(directory.path("disk")).hashes, hashes);
    EXPECT_FALSE(std::filesystem::exists(directory.path("disk/work")));
  }
}

}  // namespace
}  // namespace kith
