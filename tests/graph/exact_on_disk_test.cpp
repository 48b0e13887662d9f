// The exact graph from disk: the bytes of the graph in memory, after crashes at any call, beside damaged steps.
#include "graph/build/exact_on_disk/exact_on_disk.hpp"

#include <kith/error.hpp>
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
#include <limits>
#include <string>

namespace kith {
namespace {

using reference::Shape;
using testing::expect_refusal;
using testing::KeptGraph;
using testing::SimulatedDisk;
using testing::TemporaryDirectory;
using testing::under_limit;

struct ExactTask {
  const VectorFile& x;
  KnnGraphParams params;
  int64_t least() const { return exact_on_disk_footprint(x, params, under_limit(kNoLimit)).host; }
  GraphReport run(SimulatedDisk& disk, GraphSink& sink, int64_t limit, bool keep = false, int64_t block = 90) const {
    return exact_on_disk(x, params, {.disk = disk, .folder = "w", .keep = keep, .most_rows = block}, sink,
                         under_limit(limit));
  }
};

VectorFile file_with(const TemporaryDirectory& directory, const MatrixView& rows) {
  write_vectors(directory.path("x.npy"), rows);
  return VectorFile(directory.path("x.npy"));
}

KnnGraphParams all_pairs(int64_t k, Metric metric = Metric::l2) {
  return {.k = k, .metric = metric, .method = GraphMethod::exact};
}

TEST(ExactOnDisk, GivesTheBytesOfMemory) {
  const TemporaryDirectory directory;
  for (const Shape shape : {Shape::gaussian, Shape::near_duplicates, Shape::all_equal}) {
    const auto rows = reference::make_floats(shape, 700, 12, 1);
    const VectorFile x = file_with(directory, rows.view());
    for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine, Metric::l1}) {
      const ExactTask task{x, all_pairs(6, metric)};
      const KnnGraph truth = knn_graph(rows.view(), task.params, under_limit(kNoLimit));
      for (const int64_t limit : {task.least(), 3 * task.least(), kNoLimit}) {
        SimulatedDisk disk;
        KeptGraph found;
        const GraphReport report = task.run(disk, found, limit);
        found.expect(truth);
        EXPECT_EQ(report.method, "exact");
        EXPECT_TRUE(disk.list("w").empty());
      }
      SimulatedDisk disk;
      KeptGraph found;
      EXPECT_THROW(task.run(disk, found, task.least() - 1), OutOfMemory);
    }
  }
}

TEST(ExactOnDisk, FewerRowsThanNeighbours) {
  const TemporaryDirectory directory;
  for (const int64_t count : {1, 2, 5}) {
    const auto rows = reference::make_floats(Shape::gaussian, count, 3, 1);
    const VectorFile x = file_with(directory, rows.view());
    const ExactTask task{x, all_pairs(5)};
    SimulatedDisk disk;
    KeptGraph found;
    task.run(disk, found, kNoLimit);
    found.expect(knn_graph(rows.view(), task.params, under_limit(kNoLimit)));
  }
}

TEST(ExactOnDisk, GoesOnAfterACrashAtAnyCallWithAnotherLimit) {
  const TemporaryDirectory directory;
  const auto rows = reference::make_floats(Shape::gaussian, 400, 8, 1);
  const VectorFile x = file_with(directory, rows.view());
  const ExactTask task{x, all_pairs(5)};
  const KnnGraph truth = knn_graph(rows.view(), task.params, under_limit(kNoLimit));
  const int64_t crashes = testing::expect_graph_after_crashes(
      reference::fewer_if_sanitized(3, 17), truth,
      [&](SimulatedDisk& disk, KeptGraph& found) { task.run(disk, found, kNoLimit); },
      // Under the least limit, and in blocks of another size.
      [&](SimulatedDisk& disk, KeptGraph& found, int64_t) { task.run(disk, found, task.least(), false, 70); });
  EXPECT_GT(crashes, 10);
}

// A run that goes on reads no row's neighbours again: steps are not written a second time.
TEST(ExactOnDisk, BlocksThatAreDoneAreNotSearchedAgain) {
  const TemporaryDirectory directory;
  const auto rows = reference::make_floats(Shape::gaussian, 400, 8, 1);
  const VectorFile x = file_with(directory, rows.view());
  const ExactTask task{x, all_pairs(5)};
  SimulatedDisk disk;
  KeptGraph found;
  task.run(disk, found, kNoLimit, true);
  ASSERT_TRUE(disk.exists("w/rows-90"));
  disk.remove("w/rows-90");
  disk.set_fault({.at = INT64_MAX, .code = 0, .kind = testing::DiskCall::rename});
  task.run(disk, found, kNoLimit, true);
  EXPECT_EQ(disk.calls(), 1);
  found.expect(knn_graph(rows.view(), task.params, under_limit(kNoLimit)));
}

TEST(ExactOnDisk, DamagedStepsAreMadeAgain) {
  const TemporaryDirectory directory;
  const auto rows = reference::make_floats(Shape::gaussian, 400, 8, 1);
  const VectorFile x = file_with(directory, rows.view());
  const ExactTask task{x, all_pairs(5)};
  const KnnGraph truth = knn_graph(rows.view(), task.params, under_limit(kNoLimit));
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
}

TEST(ExactOnDisk, AStepInThePlaceOfAnotherIsMadeAgain) {
  const TemporaryDirectory directory;
  const auto rows = reference::make_floats(Shape::gaussian, 360, 8, 1);
  const VectorFile x = file_with(directory, rows.view());
  const ExactTask task{x, all_pairs(5)};
  SimulatedDisk disk;
  KeptGraph found;
  task.run(disk, found, kNoLimit, true);
  const std::string first = disk.content("w/rows-0");
  disk.set_content("w/rows-0", disk.content("w/rows-90"));
  disk.set_content("w/rows-90", first);
  task.run(disk, found, kNoLimit);
  found.expect(knn_graph(rows.view(), task.params, under_limit(kNoLimit)));
}

TEST(ExactOnDisk, ErrorsOfTheDiskAndOtherVectorsAreTold) {
  const TemporaryDirectory directory;
  auto rows = reference::make_floats(Shape::gaussian, 400, 8, 1);
  SimulatedDisk disk;
  KeptGraph found;
  {
    const VectorFile x = file_with(directory, rows.view());
    const ExactTask task{x, all_pairs(5)};
    disk.set_capacity(400 * 5 * 12);
    const auto full = testing::thrown<IoError>([&] { task.run(disk, found, kNoLimit); });
    ASSERT_TRUE(full);
    EXPECT_EQ(full->code(), ENOSPC);
    EXPECT_FALSE(disk.exists("w/rows-0"));
    disk.set_capacity(1 << 20);
    task.run(disk, found, kNoLimit, true);
    found.expect(knn_graph(rows.view(), task.params, under_limit(kNoLimit)));
    expect_refusal<InvalidArgument>([&] { ExactTask{x, all_pairs(6)}.run(disk, found, kNoLimit); }, "k is 6, and was 5");
  }
  rows.row(250)[3] += 1;
  const VectorFile changed = file_with(directory, rows.view());
  expect_refusal<InvalidArgument>([&] { ExactTask{changed, all_pairs(5)}.run(disk, found, kNoLimit); },
                                  "the vectors have changed since this work began");
  rows.row(250)[3] = std::numeric_limits<float>::quiet_NaN();
  const VectorFile bad = file_with(directory, rows.view());
  SimulatedDisk other;
  expect_refusal<InvalidArgument>([&] { ExactTask{bad, all_pairs(5)}.run(other, found, kNoLimit); }, "row 250");
}

}  // namespace
}  // namespace kith
