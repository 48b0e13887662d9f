// Graphs with new rows from disk: the bytes of memory, after crashes at any call, beside damaged steps, under any limit.
#include "graph/build/merge/extend_on_disk.hpp"

#include <kith/error.hpp>
#include <kith/graph_folder.hpp>
#include <kith/graph_merge.hpp>
#include <kith/knn_graph.hpp>
#include <kith/vector_file.hpp>

#include "core/memory_budget.hpp"
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
#include <vector>

namespace kith {
namespace {

using reference::Shape;
using testing::expect_refusal;
using testing::KeptGraph;
using testing::SimulatedDisk;
using testing::TemporaryDirectory;
using testing::under_limit;

// Rows in two files, and a graph of the first, which misses some neighbours.
class Extension {
 public:
  Extension(const TemporaryDirectory& directory, const MatrixView& rows, int64_t old, int64_t k, Metric metric = Metric::l2)
      : rows_(rows),
        old_rows_(old),
        old_{rough_graph(rows.slice(0, old), k, metric), written(directory.path("x.npy"), rows.slice(0, old))},
        fresh_(written(directory.path("new.npy"), rows.slice(old, rows.rows() - old))) {}

  const GraphOfFile& old() const { return old_; }
  const VectorFile& fresh() const { return fresh_; }
  int64_t least() const { return extend_on_disk_footprint(old_, {fresh_}, params, under_limit(kNoLimit)).host; }
  GraphReport run(SimulatedDisk& disk, GraphSink& sink, int64_t limit, bool keep = false, int64_t block = 90) const {
    return extend_on_disk(old_, {fresh_}, params, {.disk = disk, .folder = "w", .keep = keep, .most_rows = block}, sink,
                          under_limit(limit));
  }
  KnnGraph truth() const {
    const int64_t added = rows_.rows() - old_rows_;
    return extend_graph(old_.graph, rows_.slice(0, old_rows_), rows_.slice(old_rows_, added), params,
                        under_limit(kNoLimit));
  }

  GraphMergeParams params = {.recall = 1};

 private:
  static VectorFile written(const std::string& path, const MatrixView& rows) {
    write_vectors(path, rows);
    return VectorFile(path);
  }
  static KnnGraph rough_graph(const MatrixView& rows, int64_t k, Metric metric) {
    if (rows.rows() < 100 || metric == Metric::l1) return knn_graph(rows, {.k = k, .metric = metric}, under_limit(kNoLimit));
    return knn_graph(rows, {.k = k, .metric = metric, .method = GraphMethod::cells, .recall = 0.5}, under_limit(kNoLimit));
  }

  const MatrixView rows_;
  const int64_t old_rows_;
  const GraphOfFile old_;
  const VectorFile fresh_;
};

TEST(ExtendOnDisk, GivesTheBytesOfMemory) {
  for (const Shape shape : {Shape::gaussian, Shape::near_duplicates, Shape::all_equal}) {
    const auto rows = reference::make_floats(shape, 700, 12, 1);
    for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine, Metric::l1}) {
      for (const int64_t old : {3, 500, 699}) {
        SCOPED_TRACE(std::string(name_of(metric)) + " " + std::to_string(old));
        const TemporaryDirectory directory;
        const Extension task(directory, rows.view(), old, 6, metric);
        const KnnGraph truth = task.truth();
        const int64_t least = task.least();
        for (const int64_t limit : {least, 3 * least, kNoLimit}) {
          SimulatedDisk disk;
          KeptGraph found;
          EXPECT_EQ(task.run(disk, found, limit).method, "extend");
          found.expect(truth);
          EXPECT_TRUE(disk.list("w").empty());
        }
        SimulatedDisk disk;
        KeptGraph found;
        EXPECT_THROW(task.run(disk, found, least - 1), OutOfMemory);
      }
    }
  }
}

TEST(ExtendOnDisk, ARecallOfOneComparesAnyNumberOfNewRowsWithAll) {
  const auto rows = reference::make_floats(Shape::gaussian, 5600, 8, 1);
  const TemporaryDirectory directory;
  const Extension task(directory, rows.view(), 1000, 5);
  const auto added = rows.view().slice(1000, 4600);
  const KnnGraph all = knn_graph(rows.view(), {.k = 5, .method = GraphMethod::exact}, under_limit(kNoLimit));
  const KnnGraph exact = extend_graph(knn_graph(rows.view().slice(0, 1000), {.k = 5, .method = GraphMethod::exact},
                                                under_limit(kNoLimit)),
                                      rows.view().slice(0, 1000), added, task.params, under_limit(kNoLimit));
  expect_same_bytes(all, exact);
  SimulatedDisk disk;
  KeptGraph found;
  task.run(disk, found, kNoLimit, false, 1000);
  found.expect(task.truth());
}

TEST(ExtendOnDisk, GoesOnAfterACrashAtAnyCallWithAnotherLimit) {
  const TemporaryDirectory directory;
  const auto rows = reference::make_floats(Shape::gaussian, 400, 8, 1);
  const Extension task(directory, rows.view(), 250, 5);
  const KnnGraph truth = task.truth();
  const int64_t crashes = testing::expect_graph_after_crashes(
      reference::fewer_if_sanitized(3, 17), truth,
      [&](SimulatedDisk& disk, KeptGraph& found) { task.run(disk, found, kNoLimit); },
      // Under the least limit, and in blocks of another size.
      [&](SimulatedDisk& disk, KeptGraph& found, int64_t) { task.run(disk, found, task.least(), false, 70); });
  EXPECT_GT(crashes, 10);
}

TEST(ExtendOnDisk, DamagedAndExchangedStepsAreMadeAgain) {
  const TemporaryDirectory directory;
  const auto rows = reference::make_floats(Shape::gaussian, 400, 8, 1);
  const Extension task(directory, rows.view(), 250, 5);
  const KnnGraph truth = task.truth();
  SimulatedDisk disk;
  KeptGraph found;
  task.run(disk, found, kNoLimit, true);
  for (const std::string& name : disk.list("w")) {
    if (name == "manifest" || name == "lock") continue;
    for (const double where : {0.0, 0.5, 1.0}) {
      if (!disk.exists("w/" + name)) continue;  // blocks are cut anew
      std::string bytes = disk.content("w/" + name);
      bytes[static_cast<size_t>(where * static_cast<double>(bytes.size() - 1))] ^= 4;
      disk.set_content("w/" + name, bytes);
      task.run(disk, found, kNoLimit, true, 70);
      found.expect(truth);
    }
  }
  SimulatedDisk other;
  task.run(other, found, kNoLimit, true);
  const std::string first = other.content("w/rows-0");
  other.set_content("w/rows-0", other.content("w/rows-90"));
  other.set_content("w/rows-90", first);
  task.run(other, found, kNoLimit);
  found.expect(truth);
}

TEST(ExtendOnDisk, WhatDoesNotBelongTogetherIsRefused) {
  const TemporaryDirectory directory;
  auto rows = reference::make_floats(Shape::gaussian, 400, 8, 1);
  SimulatedDisk disk;
  KeptGraph found;
  {
    const Extension task(directory, rows.view(), 250, 5);
    disk.set_capacity(400 * 5 * 12);
    const auto full = testing::thrown<IoError>([&] { task.run(disk, found, kNoLimit); });
    ASSERT_TRUE(full);
    EXPECT_EQ(full->code(), ENOSPC);
    disk.set_capacity(1 << 20);
    task.run(disk, found, kNoLimit, true);
    found.expect(task.truth());
    const auto other = reference::make_floats(Shape::gaussian, 250, 8, 2);
    write_vectors(directory.path("other.npy"), other.view());
    expect_refusal<InvalidArgument>(
        [&] {
          extend_graph_folder({task.old().graph, VectorFile(directory.path("other.npy"))}, task.fresh(),
                              directory.path("graph"), task.params, {}, under_limit(kNoLimit));
        },
        "give the vectors that the graph was built of");
  }
  rows.row(350)[3] += 1;
  {
    const Extension changed(directory, rows.view(), 250, 5);
    expect_refusal<InvalidArgument>([&] { changed.run(disk, found, kNoLimit); },
                                    "the vectors have changed since this work began");
  }
  rows.row(350)[3] = std::numeric_limits<float>::quiet_NaN();
  const Extension bad(directory, rows.view(), 250, 5);
  expect_refusal<InvalidArgument>(
      [&] {
        extend_graph_folder(bad.old(), bad.fresh(), directory.path("graph"), bad.params, {}, under_limit(kNoLimit));
      },
      "row 100");
  expect_refusal<InvalidArgument>([&] { GraphMergeParams{.recall = 1}.validate(); }, "recall = 1");
}

TEST(ExtendOnDisk, GraphsInFoldersAreExtendedUnderLimits) {
  const TemporaryDirectory directory;
  const auto rows = reference::make_floats(Shape::gaussian, 9000, 32, 1);
  const Extension task(directory, rows.view(), 8500, 6);
  const GraphHashes truth = hash_graph(extend_graph(task.old().graph, rows.view().slice(0, 8500), rows.view().slice(8500, 500),
                                                    {}, under_limit(kNoLimit)));
  const int64_t least = task.least();
  EXPECT_LT(least, 9000 * 32 * 4 / 2);
  for (const int64_t limit : {least, kNoLimit}) {
    const GraphReport report = extend_graph_folder(task.old(), task.fresh(), directory.path("graph"), {}, {}, under_limit(limit));
    EXPECT_EQ(report.method, "extend");
    EXPECT_EQ(graph_folder_info(directory.path("graph")).hashes, truth);
    EXPECT_FALSE(std::filesystem::exists(directory.path("graph/work")));
  }
}

// Many new rows are merged by rounds, or, where the old ones are few, compared with these.
TEST(ExtendOnDisk, ManyNewRowsAreMergedUnderAnyLimit) {
  const TemporaryDirectory directory;
  const auto rows = reference::make_floats(Shape::gaussian, 11'000, 8, 1);
  for (const int64_t old_rows : {2'000, 5'000}) {
    SCOPED_TRACE(old_rows);
    const Extension many(directory, rows.view(), old_rows, 6);
    const GraphMergeParams params{.recall = 0.9};
    const GraphHashes truth = hash_graph(extend_graph(many.old().graph, rows.view().slice(0, old_rows),
                                                      rows.view().slice(old_rows, 11'000 - old_rows), params,
                                                      under_limit(kNoLimit)));
    const auto refused = testing::thrown<OutOfMemory>(
        [&] { extend_graph_folder(many.old(), many.fresh(), directory.path("many"), params, {}, under_limit(1 << 18)); });
    ASSERT_TRUE(refused);
    GraphWork kept;
    kept.folder = directory.path("steps");
    for (const GraphWork& work : {GraphWork(), kept}) {
      const int64_t limit = work.folder.empty() ? refused->bytes_needed() : kNoLimit;
      const GraphReport report =
          extend_graph_folder(many.old(), many.fresh(), directory.path("many"), params, work, under_limit(limit));
      EXPECT_EQ(report.method, "extend");
      EXPECT_EQ(graph_folder_info(directory.path("many")).hashes, truth);
      EXPECT_FALSE(std::filesystem::exists(directory.path("many/work")));
      EXPECT_FALSE(std::filesystem::exists(directory.path("many/work.new")));
      EXPECT_FALSE(std::filesystem::exists(directory.path("steps.new")));
    }
  }
}

}  // namespace
}  // namespace kith
