// Cells from disk for a graph without distances: the ids and the recall of the graph in memory, with half the lists on disk.
#include <kith/error.hpp>
#include <kith/knn_graph.hpp>
#include <kith/vector_file.hpp>

#include "graph/build/cells_on_disk/cell_store.hpp"
#include "graph/build/cells_on_disk/cells_on_disk.hpp"
#include "graph/build/method/build_graph.hpp"
#include "graph/kept_graph.hpp"
#include "graph/lists/control_rows.hpp"
#include "io/simulated_disk.hpp"
#include "io/temporary_directory.hpp"
#include "reference/data.hpp"
#include "reference/sanitized.hpp"

#include <gtest/gtest.h>

#include <string>
#include <tuple>
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

class ListsOfIds : public ::testing::Test {
 protected:
  static KnnGraphParams params(int64_t k, int64_t cells) {
    return {.k = k, .method = GraphMethod::cells, .cells = cells};
  }
  VectorFile file_of(const MatrixView& rows) const {
    write_vectors(directory_.path("x.npy"), rows);
    return VectorFile(directory_.path("x.npy"));
  }
  // Steps are kept. `more`: than the least memory.
  static GraphReport build(SimulatedDisk& disk, const VectorFile& x, const KnnGraphParams& params, GraphSink& sink,
                           int64_t most_rows = 100, int64_t more = 0) {
    const CellsParams cells = cells_params(x.rows(), params);
    const int64_t least = cells_on_disk_footprint(x, cells, under_limit(kNoLimit)).host;
    return cells_on_disk(x, cells, true, {disk, "w", true, most_rows}, sink, under_limit(least + more)).value();
  }
  static int64_t bytes_of_lists(SimulatedDisk& disk) {
    int64_t bytes = 0;
    for (const std::string& name : disk.list("w")) {
      if (name.starts_with("lists-")) bytes += static_cast<int64_t>(disk.content("w/" + name).size());
    }
    return bytes;
  }

  const TemporaryDirectory directory_;
};

TEST_F(ListsOfIds, HaveTheIdsAndTheRecallOfMemory) {
  for (const auto& [shape, rows, k] : {std::tuple{Shape::gaussian, int64_t{2500}, int64_t{7}},
                                       std::tuple{Shape::all_equal, int64_t{700}, int64_t{5}},
                                       std::tuple{Shape::near_duplicates, int64_t{1300}, int64_t{1}}}) {
    SCOPED_TRACE(name_of(shape));
    const auto values = reference::make_floats(shape, rows, 12, 1);
    const VectorFile x = file_of(values.view());
    const KnnGraph truth = knn_graph(values.view(), params(k, 25), under_limit(kNoLimit));
    SimulatedDisk disk;
    KeptGraph found(true);
    const GraphReport report = build(disk, x, params(k, 25), found);
    found.expect(truth);
    EXPECT_EQ(report.recall->recall, truth.report().recall->recall);
    EXPECT_EQ(report.recall->recall_at_10, truth.report().recall->recall_at_10);
    EXPECT_EQ(report.recall->standard_error, truth.report().recall->standard_error);
  }
}

TEST_F(ListsOfIds, TakeLessRoom) {
  const auto values = reference::make_floats(Shape::gaussian, 5000, 8, 1);
  const VectorFile x = file_of(values.view());
  const auto bytes = [&](bool ids_only) {
    SimulatedDisk disk;
    KeptGraph found(ids_only);
    build(disk, x, params(20, 40), found);
    return bytes_of_lists(disk);
  };
  const int64_t whole = 5000 * (4 + 20 * 8);
  const int64_t ids = 5000 * (4 + 20 * 4) + kControlRows * (4 + 20 * 8);  // lists of the control rows stay whole
  EXPECT_NEAR(static_cast<double>(bytes(false)), whole, 0.05 * whole);
  EXPECT_NEAR(static_cast<double>(bytes(true)), ids, 0.05 * whole);
}

TEST_F(ListsOfIds, KeepAnyLimit) {
  const auto values = reference::make_floats(Shape::gaussian, 2000, 8, 1);
  const VectorFile x = file_of(values.view());
  const KnnGraph truth = knn_graph(values.view(), params(100, 10), under_limit(kNoLimit));
  for (int64_t more = 0; more < 4'000'000; more += reference::fewer_if_sanitized(400'000, 1'300'000)) {
    SCOPED_TRACE(more);
    SimulatedDisk disk;
    KeptGraph found(true);
    build(disk, x, params(100, 10), found, INT64_MAX, more);
    found.expect(truth);
  }
}

// Blocks of a few rows, many of which are no control row.
TEST_F(ListsOfIds, MayHaveNoControlRowInABlock) {
  const auto values = reference::make_floats(Shape::gaussian, 4000, 4, 1);
  const VectorFile x = file_of(values.view());
  const KnnGraph truth = knn_graph(values.view(), params(2, 30), under_limit(kNoLimit));
  SimulatedDisk disk;
  KeptGraph found(true);
  const GraphReport report = build(disk, x, params(2, 30), found, 1);
  found.expect(truth);
  EXPECT_EQ(report.recall->recall, truth.report().recall->recall);
}

TEST_F(ListsOfIds, GoOnAfterACrashAtAnyCall) {
  const auto values = reference::make_floats(Shape::gaussian, 600, 8, 1);
  const VectorFile x = file_of(values.view());
  const KnnGraph truth = knn_graph(values.view(), params(5, 8), under_limit(kNoLimit));
  const int64_t step = reference::fewer_if_sanitized(61, 151);
  for (int64_t at = 0;; at += step) {
    SimulatedDisk disk;
    disk.set_fault({.at = at, .code = 0, .kind = {}});
    KeptGraph found(true);
    try {
      build(disk, x, params(5, 8), found);
      EXPECT_GE(at / step, 2);
      return;
    } catch (const Crash&) {
      disk.crash(testing::Loss::bytes_that_are_not_synced);
    }
    build(disk, x, params(5, 8), found);
    found.expect(truth);
  }
}

TEST_F(ListsOfIds, AreNotMixedWithWholeOnes) {
  const auto values = reference::make_floats(Shape::gaussian, 600, 8, 1);
  const VectorFile x = file_of(values.view());
  for (const bool ids_first : {false, true}) {
    SimulatedDisk disk;
    disk.set_fault({.at = 60, .code = 0, .kind = {}});
    KeptGraph first(ids_first);
    EXPECT_THROW(build(disk, x, params(5, 8), first), Crash);
    disk.crash(testing::Loss::bytes_that_are_not_synced);
    KeptGraph other(!ids_first);
    expect_refusal<InvalidArgument>([&] { build(disk, x, params(5, 8), other); },
                                    ids_first ? "lists is ids and distances, and was ids"
                                              : "lists is ids, and was ids and distances");
    build(disk, x, params(5, 8), first);
  }
}

TEST(StoredRecord, KeepsCellsInAsFewBytesAsTheyNeed) {
  for (const auto& [cells, bytes] : {std::pair<int64_t, int64_t>{2, 2}, {65536, 2}, {65537, 3}, {1 << 24, 3},
                                     {(1 << 24) + 1, 4}, {INT32_MAX, 4}}) {
    const StoredRecord record(10, 3, cells);
    ASSERT_EQ(record.all_probes_bytes(), 3 * bytes) << cells;
    std::vector<std::byte> stored(static_cast<size_t>(record.all_probes_bytes()), std::byte{0xAA});
    const uint32_t kept[] = {static_cast<uint32_t>(cells - 1), 0, static_cast<uint32_t>(cells / 3)};
    for (int64_t probe = 0; probe < 3; ++probe) record.put_cell(stored.data(), probe, kept[probe]);
    for (int64_t probe = 0; probe < 3; ++probe) EXPECT_EQ(record.cell(stored.data(), probe), kept[probe]) << cells;
  }
}

}  // namespace
}  // namespace kith
