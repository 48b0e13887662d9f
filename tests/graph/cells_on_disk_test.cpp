// Cells from disk: the bytes of the graph in memory, under any limit, after crashes at any call, beside damaged steps.
#include "graph/build/cells_on_disk/cells_on_disk.hpp"

#include <kith/error.hpp>
#include <kith/graph_folder.hpp>
#include <kith/graph_of_files.hpp>
#include <kith/knn_graph.hpp>
#include <kith/vector_file.hpp>
#include <kith/work_part.hpp>

#include "core/memory_budget.hpp"
#include "exact/exact_check.hpp"
#include "graph/build/cells_on_disk/cell_curve.hpp"
#include "graph/build/cells_on_disk/cell_store.hpp"
#include "graph/build/method/build_graph.hpp"
#include "graph/kept_graph.hpp"
#include "graph/same_graph.hpp"
#include "io/simulated_disk.hpp"
#include "io/temporary_directory.hpp"
#include "io/thrown.hpp"
#include "reference/data.hpp"
#include "reference/sanitized.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
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
using testing::Loss;
using testing::SimulatedDisk;
using testing::TemporaryDirectory;
using testing::under_limit;

struct Task {
  const VectorFile& x;
  KnnGraphParams params;
  CellsParams cells() const { return cells_params(x.rows(), params); }
  int64_t least() const { return cells_on_disk_footprint(x, cells(), under_limit(kNoLimit)).host; }
  GraphReport run(SimulatedDisk& disk, GraphSink& sink, int64_t limit, bool keep = false,
                  int64_t most_rows = 100) const {
    DiskWork work{disk, "w", keep, most_rows};
    work.file_bytes = 4000;  // so that most steps have several
    return cells_on_disk(x, cells(), true, work, sink, under_limit(limit)).value();
  }
};

int64_t count_blocks(SimulatedDisk& disk) {
  const std::vector<std::string> names = disk.list("w");
  return std::count_if(names.begin(), names.end(), [](const std::string& name) {
    return name.starts_with("lists-") && name.find(".data") == std::string::npos;
  });
}

KnnGraphParams by_cells(int64_t k, int64_t cells, Metric metric = Metric::l2) {
  return {.k = k, .metric = metric, .method = GraphMethod::cells, .cells = cells};
}

// A file of rows, in the place of one that was there.
VectorFile file_of(const TemporaryDirectory& directory, const MatrixView& rows) {
  write_vectors(directory.path("x.npy"), rows);
  return VectorFile(directory.path("x.npy"));
}

void expect_bytes_of_memory(const MatrixView& rows, const KnnGraphParams& params, int64_t blocks) {
  const TemporaryDirectory directory;
  const VectorFile x = file_of(directory, rows);
  const KnnGraph truth = knn_graph(rows, params, under_limit(kNoLimit));
  const Task task{x, params};
  for (const int64_t limit : {task.least(), task.least() + (int64_t{1} << 20), int64_t{1} << 30}) {
    SimulatedDisk disk;
    KeptGraph found;
    const GraphReport report = task.run(disk, found, limit, true, limit == int64_t{1} << 30 ? INT64_MAX : 100);
    found.expect(truth);
    EXPECT_EQ(report.recall->recall, truth.report().recall->recall);
    EXPECT_EQ(report.reached, truth.report().reached);
    ASSERT_EQ(report.parameters.size(), truth.report().parameters.size());
    for (size_t i = 0; i < report.parameters.size(); ++i) {
      EXPECT_EQ(report.parameters[i].name, truth.report().parameters[i].name);
      EXPECT_EQ(report.parameters[i].value, truth.report().parameters[i].value) << report.parameters[i].name;
    }
    if (limit == task.least()) {
      EXPECT_GE(count_blocks(disk), blocks);
    }
    if (limit == int64_t{1} << 30) {
      EXPECT_EQ(count_blocks(disk), 1);
    }
  }
}

TEST(CellsOnDisk, GivesTheBytesOfMemory) {
  const auto rows = reference::make_floats(Shape::gaussian, 3000, 24, 1);
  for (const Metric metric : {Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::cosine}) {
    SCOPED_TRACE(name_of(metric));
    expect_bytes_of_memory(rows.view(), by_cells(7, 40, metric), 3);
  }
}

TEST(CellsOnDisk, GivesTheBytesOfMemoryForHardData) {
  for (const Shape shape : {Shape::near_duplicates, Shape::all_equal}) {
    SCOPED_TRACE(name_of(shape));
    expect_bytes_of_memory(reference::make_floats(shape, 2000, 17, 1).view(), by_cells(5, 20), 2);
  }
  expect_bytes_of_memory(reference::make_bytes(2500, 19, 1, 3).view(), by_cells(4, 30), 2);  // with many ties
}

TEST(CellsOnDisk, ACellMayBeLargerThanABlock) {
  expect_bytes_of_memory(reference::make_floats(Shape::gaussian, 2500, 16, 2).view(), by_cells(6, 1), 2);
  expect_bytes_of_memory(reference::make_floats(Shape::gaussian, 2500, 16, 2).view(), by_cells(6, 2), 2);
}

// A row may come to probe all of many cells: then rows go to their pieces in several passes, for some cells each.
TEST(CellsOnDisk, ManyCellsTakeLittleMemory) {
  const auto rows = reference::make_bytes(3000, 8, 1, 200);
  const TemporaryDirectory directory;
  const VectorFile x = file_of(directory, rows.view());
  const Task task{x, by_cells(5, 1500)};
  constexpr int64_t kProbeBytes = 2;
  EXPECT_LT(task.least(), 1500 * 1500 * kProbeBytes);  // a row of every cell with its probes
  const KnnGraph truth = knn_graph(rows.view(), task.params, under_limit(kNoLimit));
  SimulatedDisk disk;
  KeptGraph found;
  task.run(disk, found, task.least(), false, 1000);
  found.expect(truth);
}

TEST(CellsOnDisk, FewRows) {
  for (const int64_t rows : {9, 30, 100}) {
    expect_bytes_of_memory(reference::make_floats(Shape::gaussian, rows, 5, 1).view(),
                           by_cells(7, std::min<int64_t>(rows, 12)), 1);
  }
}

TEST(CellsOnDisk, FewProbes) {
  KnnGraphParams params = by_cells(8, 60);
  params.probes = 2;
  expect_bytes_of_memory(reference::make_floats(Shape::gaussian, 3000, 24, 3).view(), params, 2);
}

TEST(CellsOnDisk, TheLeastLimitIsNamedAndWorks) {
  const TemporaryDirectory directory;
  const auto rows = reference::make_floats(Shape::gaussian, 1500, 12, 1);
  const VectorFile x = file_of(directory, rows.view());
  const Task task{x, by_cells(5, 25)};
  SimulatedDisk disk;
  KeptGraph found;
  const auto refused = testing::thrown<OutOfMemory>([&] { task.run(disk, found, 1000); });
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->bytes_needed(), task.least());
  EXPECT_THROW(task.run(disk, found, task.least() - 1), OutOfMemory);
  EXPECT_TRUE(disk.list("w").empty());
  task.run(disk, found, task.least());
  found.expect(knn_graph(rows.view(), task.params, under_limit(kNoLimit)));
  EXPECT_TRUE(disk.list("w").empty());
}

TEST(CellsOnDisk, GoesOnAfterACrashAtAnyCall) {
  const TemporaryDirectory directory;
  const auto rows = reference::make_floats(Shape::gaussian, 600, 8, 1);
  const VectorFile x = file_of(directory, rows.view());
  const Task task{x, by_cells(5, 8)};
  const KnnGraph truth = knn_graph(rows.view(), task.params, under_limit(kNoLimit));
  const int64_t least = task.least();
  const int64_t step = reference::fewer_if_sanitized(37, 97);
  const int64_t crashes = testing::expect_graph_after_crashes(
      step, truth, [&](SimulatedDisk& disk, KeptGraph& found) { task.run(disk, found, least); },
      [&](SimulatedDisk& disk, KeptGraph& found, int64_t at) { task.run(disk, found, least + at * 100); });
  EXPECT_GE(crashes, 2);
}

TEST(CellsOnDisk, ErrorsOfTheDiskAreToldAndItGoesOn) {
  const TemporaryDirectory directory;
  const auto rows = reference::make_floats(Shape::gaussian, 600, 8, 1);
  const VectorFile x = file_of(directory, rows.view());
  const Task task{x, by_cells(5, 8)};
  const KnnGraph truth = knn_graph(rows.view(), task.params, under_limit(kNoLimit));
  SimulatedDisk disk;
  KeptGraph found;
  int64_t failed = 0;
  for (int64_t at = 3; at < 3000; at = at * 5 / 3 + 1) {
    disk.set_fault({.at = at, .code = EIO, .kind = {}});
    try {
      task.run(disk, found, task.least());
      break;
    } catch (const IoError&) {
      ++failed;
    }
  }
  EXPECT_GT(failed, 3);
  disk.clear_fault();
  disk.set_shortest(1000);
  task.run(disk, found, task.least());
  found.expect(truth);
}

TEST(CellsOnDisk, AFullDiskIsToldAndItGoesOn) {
  const TemporaryDirectory directory;
  const auto rows = reference::make_floats(Shape::gaussian, 600, 8, 1);
  const VectorFile x = file_of(directory, rows.view());
  const Task task{x, by_cells(5, 8)};
  SimulatedDisk disk;
  KeptGraph found;
  for (const int64_t room : {1000, 5000, 20'000, 40'000}) {
    disk.set_capacity(room);
    const auto refused = testing::thrown<IoError>([&] { task.run(disk, found, task.least()); });
    ASSERT_TRUE(refused) << room;
    EXPECT_EQ(refused->code(), ENOSPC);
  }
  disk.set_capacity(1 << 20);
  task.run(disk, found, task.least());
  found.expect(knn_graph(rows.view(), task.params, under_limit(kNoLimit)));
}

// The room that a run has from its beginning to its end.
int64_t room_of_a_run(const Task& task, int64_t least) {
  for (int64_t room = 20'000;; room += room / 50) {
    SimulatedDisk disk;
    disk.set_capacity(room);
    KeptGraph found;
    try {
      task.run(disk, found, least);
      return room;
    } catch (const IoError&) {
    }
  }
}

TEST(CellsOnDisk, WhatIsOnTheDiskAlreadyIsNotAskedForAgain) {
  const TemporaryDirectory directory;
  const auto rows = reference::make_floats(Shape::gaussian, 600, 8, 1);
  const VectorFile x = file_of(directory, rows.view());
  const Task task{x, by_cells(5, 8)};
  const KnnGraph truth = knn_graph(rows.view(), task.params, under_limit(kNoLimit));
  const int64_t room = room_of_a_run(task, task.least());
  int64_t kills = 0;
  for (int64_t rename = 0;; ++rename) {
    SimulatedDisk disk;
    disk.set_capacity(room);
    disk.set_fault({.at = rename, .code = 0, .kind = testing::DiskCall::rename});
    KeptGraph found;
    try {
      task.run(disk, found, task.least());
      break;
    } catch (const Crash&) {
      disk.crash(Loss::bytes_that_are_not_synced);
    }
    ++kills;
    task.run(disk, found, task.least());
    found.expect(truth);
  }
  EXPECT_GT(kills, 8);
}

// A graph that takes so much on the disk of the work folder.
class LargeGraph final : public GraphSink {
 public:
  explicit LargeGraph(int64_t bytes) : bytes_(bytes) {}
  int64_t bytes_beside(const std::string&) const override { return bytes_; }
  void begin() override { begun = true; }
  void append(const NeighborsView&) override {}
  void finish(const GraphReport&) override {}
  bool begun = false;

 private:
  const int64_t bytes_;
};

TEST(CellsOnDisk, RoomForTheGraphIsAskedForBeforeRowsAreCompared) {
  const TemporaryDirectory directory;
  const auto rows = reference::make_floats(Shape::gaussian, 600, 8, 1);
  const VectorFile x = file_of(directory, rows.view());
  const Task task{x, by_cells(5, 8)};
  SimulatedDisk disk;
  disk.set_capacity(room_of_a_run(task, task.least()));
  LargeGraph graph(1 << 20);
  const auto full = testing::thrown<IoError>([&] { task.run(disk, graph, task.least()); });
  ASSERT_TRUE(full);
  EXPECT_EQ(full->code(), ENOSPC);
  EXPECT_EQ(count_blocks(disk), 0);
  EXPECT_FALSE(graph.begun);
  disk.set_capacity(2 << 20);
  task.run(disk, graph, task.least());
  EXPECT_TRUE(graph.begun);
}

// Every step in turn is damaged, at its beginning, in its middle or at its end, at every moment that a crash can leave.
TEST(CellsOnDisk, DamagedStepsAreMadeAgain) {
  const TemporaryDirectory directory;
  const auto rows = reference::make_floats(Shape::gaussian, 600, 8, 1);
  const VectorFile x = file_of(directory, rows.view());
  const Task task{x, by_cells(5, 8)};
  const KnnGraph truth = knn_graph(rows.view(), task.params, under_limit(kNoLimit));
  const int64_t least = task.least();
  SimulatedDisk whole;
  KeptGraph found;
  task.run(whole, found, least, true);
  const int64_t renames = static_cast<int64_t>(whole.list("w").size());
  for (int64_t rename = 1; rename < renames; ++rename) {
    for (const double where : {0.0, 0.5, 1.0}) {
      SimulatedDisk disk;
      disk.set_fault({.at = rename, .code = 0, .kind = testing::DiskCall::rename});
      try {
        task.run(disk, found, least, true);
        continue;
      } catch (const Crash&) {
        disk.crash(Loss::all_that_is_not_synced);
      }
      for (const std::string& name : disk.list("w")) {
        if (name == "manifest" || name == "lock") continue;
        std::string bytes = disk.content("w/" + name);
        if (bytes.empty()) continue;
        bytes[static_cast<size_t>(where * static_cast<double>(bytes.size() - 1))] ^= 4;
        disk.set_content("w/" + name, bytes);
      }
      task.run(disk, found, least + 50'000, false);
      found.expect(truth);
    }
  }
}

// Parts that do not wait take turns until all have ended. `part` runs one, and says whether it has ended.
template <typename Part>
void take_turns(int64_t parts, const Part& part) {
  std::vector<bool> ended(static_cast<size_t>(parts), false);
  for (int turn = 0; turn < 100; ++turn) {
    for (int64_t number = parts; number >= 1; --number) {
      const auto at = static_cast<size_t>(number - 1);
      if (!ended[at]) ended[at] = part(WorkPart{number, parts, false});
    }
    if (std::all_of(ended.begin(), ended.end(), [](bool end) { return end; })) return;
  }
  FAIL() << "parts that never end";
}

struct PartTask {
  const Task& task;
  SimulatedDisk& disk;
  KeptGraph& found;  // of part 1

  // Whether it has ended.
  bool run(const WorkPart& part, int64_t limit, bool keep = false) const {
    KeptGraph others;
    try {
      DiskWork work{disk, "w", keep, 100, part, 64};
      work.file_bytes = 4000;
      cells_on_disk(task.x, task.cells(), true, work, part.number == 1 ? found : others, under_limit(limit));
      return true;
    } catch (const Unfinished&) {
      return false;
    }
  }
};

TEST(CellsOnDisk, PartsGiveTheBytesOfOneProcess) {
  const TemporaryDirectory directory;
  const auto rows = reference::make_floats(Shape::gaussian, 1000, 8, 1);
  const VectorFile x = file_of(directory, rows.view());
  const Task task{x, by_cells(5, 12)};
  const KnnGraph truth = knn_graph(rows.view(), task.params, under_limit(kNoLimit));
  for (const int64_t parts : {2, 3, 7, 40}) {
    SimulatedDisk disk;
    KeptGraph found;
    take_turns(parts, [&](const WorkPart& part) {
      return PartTask{task, disk, found}.run(part, task.least() + 1000 * part.number);
    });
    found.expect(truth);
    EXPECT_TRUE(disk.list("w").empty());
  }
}

TEST(CellsOnDisk, PartsGoOnAfterACrashAtAnyCall) {
  const TemporaryDirectory directory;
  const auto rows = reference::make_floats(Shape::gaussian, 600, 8, 1);
  const VectorFile x = file_of(directory, rows.view());
  const Task task{x, by_cells(5, 8)};
  const KnnGraph truth = knn_graph(rows.view(), task.params, under_limit(kNoLimit));
  const int64_t least = task.least();
  for (const int64_t crashing : {1, 2}) {
    for (int64_t at = 0; at < 2000; at += reference::fewer_if_sanitized(71, 293)) {
      SimulatedDisk disk;
      KeptGraph found;
      bool crashed = false;
      take_turns(3, [&](const WorkPart& part) {
        if (part.number == crashing && !crashed) disk.set_fault({.at = at, .code = 0, .kind = {}});
        try {
          const bool ended = PartTask{task, disk, found}.run(part, least);
          disk.clear_fault();
          return ended;
        } catch (const Crash&) {
          crashed = true;
          disk.crash(at % 2 == 0 ? Loss::all_that_is_not_synced : Loss::bytes_that_are_not_synced);
          return false;
        }
      });
      found.expect(truth);
      EXPECT_TRUE(disk.list("w").empty()) << at;
    }
  }
}

// The last part clears the folder: killed at any file it removes, it ends when it is started again. Only once the very
// last sign is gone the folder is as good as empty.
TEST(CellsOnDisk, APartThatIsKilledWhileItClearsEndsWhenItIsStartedAgain) {
  const TemporaryDirectory directory;
  const auto rows = reference::make_floats(Shape::gaussian, 600, 8, 1);
  const VectorFile x = file_of(directory, rows.view());
  const Task task{x, by_cells(5, 8)};
  const int64_t least = task.least();
  int killed = 0;
  for (int64_t at = 0;; ++at) {
    SimulatedDisk disk;
    KeptGraph found;
    const PartTask parts{task, disk, found};
    for (int turn = 0; !parts.run({1, 2, false}, least); ++turn) {
      ASSERT_LT(turn, 20);
      (void)parts.run({2, 2, false}, least);
    }
    ASSERT_TRUE(disk.exists("w/done-of2"));
    disk.set_fault({.at = at, .code = 0, .kind = testing::DiskCall::remove});
    try {
      ASSERT_TRUE(parts.run({2, 2, false}, least));
      break;
    } catch (const Crash&) {
      disk.crash(Loss::bytes_that_are_not_synced);
    }
    ++killed;
    if (!disk.exists("w/done-of2")) continue;
    EXPECT_TRUE(parts.run({2, 2, false}, least)) << at;
    EXPECT_TRUE(disk.list("w").empty()) << at;
  }
  EXPECT_GE(killed, 4);
}

// A folder whose graph is taken away.
class LostGraph final : public GraphSink {
 public:
  void begin() override {}
  void append(const NeighborsView& part) override { rows += part.queries; }
  void finish(const GraphReport&) override {}
  bool is_there() const override { return false; }
  int64_t rows = 0;
};

TEST(CellsOnDisk, APartThatLeadsDoesNotEndWithoutItsGraph) {
  const TemporaryDirectory directory;
  const auto rows = reference::make_floats(Shape::gaussian, 600, 8, 1);
  const VectorFile x = file_of(directory, rows.view());
  const Task task{x, by_cells(5, 8)};
  for (const bool keep : {false, true}) {
    SimulatedDisk disk;
    KeptGraph found;
    const PartTask parts{task, disk, found};
    for (int turn = 0; !parts.run({1, 2, false}, task.least(), keep); ++turn) {
      ASSERT_LT(turn, 20);
      (void)parts.run({2, 2, false}, task.least(), keep);
    }
    LostGraph lost;
    const auto again = [&] {
      cells_on_disk(x, task.cells(), true, {disk, "w", keep, 100, {1, 2, false}, 64}, lost, under_limit(kNoLimit));
    };
    if (keep) {
      again();
      EXPECT_EQ(lost.rows, x.rows());
    } else {
      expect_refusal<InvalidState>(again, "remove the folder 'w' and begin anew");
    }
  }
}

TEST(CellsOnDisk, WorkOfPartsIsEndedByAnyNumberOfThem) {
  const TemporaryDirectory directory;
  const auto rows = reference::make_floats(Shape::gaussian, 1000, 8, 1);
  const VectorFile x = file_of(directory, rows.view());
  const Task task{x, by_cells(5, 12)};
  const KnnGraph truth = knn_graph(rows.view(), task.params, under_limit(kNoLimit));
  for (int turns = 1; turns < 8; ++turns) {
    for (const int64_t then : {1, 2, 5}) {
      SimulatedDisk disk;
      KeptGraph found;
      const PartTask parts{task, disk, found};
      // The third part never comes in the first turn.
      for (int turn = 0; turn < turns; ++turn) {
        for (const int64_t number : {1, 2}) (void)parts.run({number, 3, false}, task.least());
        if (turn > 1) (void)parts.run({3, 3, false}, task.least());
      }
      if (then == 1) {
        task.run(disk, found, task.least());
      } else {
        take_turns(then, [&](const WorkPart& part) { return parts.run(part, task.least()); });
      }
      found.expect(truth);
      EXPECT_TRUE(disk.list("w").empty());
    }
  }
}

TEST(CellsOnDisk, PartsSayWhatIsLeftAndWhatIsDamaged) {
  const TemporaryDirectory directory;
  const auto rows = reference::make_floats(Shape::gaussian, 600, 8, 1);
  const VectorFile x = file_of(directory, rows.view());
  const Task task{x, by_cells(5, 8)};
  SimulatedDisk disk;
  KeptGraph found;
  const auto run_part = [&](int64_t number, int64_t count) {
    return [&, number, count] {
      cells_on_disk(x, task.cells(), true, {disk, "w", false, 100, {number, count, false}, 64}, found,
                    under_limit(kNoLimit));
    };
  };
  expect_refusal<Unfinished>(run_part(2, 2), "the step 'survey' of part 1");
  expect_refusal<Unfinished>(run_part(1, 2), "5 of 10 steps that rank cells");
  expect_refusal<Unfinished>(run_part(2, 2), "'rows-");
  expect_refusal<Unfinished>(run_part(1, 2), "rows");
  std::string centres = disk.content("w/centres");
  centres[20] ^= 1;
  disk.set_content("w/centres", centres);
  expect_refusal<InvalidState>(run_part(2, 2), "the step was removed: end all parts, and start them again");
  take_turns(2, [&](const WorkPart& part) { return PartTask{task, disk, found}.run(part, task.least()); });
  found.expect(knn_graph(rows.view(), task.params, under_limit(kNoLimit)));
}

TEST(CellsOnDisk, OtherWorkAndChangedVectorsAreRefused) {
  const TemporaryDirectory directory;
  auto rows = reference::make_floats(Shape::gaussian, 600, 8, 1);
  SimulatedDisk disk;
  KeptGraph found;
  const KnnGraphParams params = by_cells(5, 8);
  {
    const VectorFile x = file_of(directory, rows.view());
    const Task task{x, params};
    task.run(disk, found, task.least(), true);
    for (const auto& [other, told] : std::vector<std::pair<KnnGraphParams, std::string>>{
             {by_cells(6, 8), "k is 6, and was 5"},
             {by_cells(5, 9), "cells is 9, and was 8"},
             {by_cells(5, 8, Metric::cosine), "metric is cosine, and was l2"}}) {
      expect_refusal<InvalidArgument>([&] { Task{x, other}.run(disk, found, kNoLimit); }, told);
    }
    const auto lock = disk.try_lock("w/lock", LockKind::alone);
    expect_refusal<InvalidState>([&] { task.run(disk, found, kNoLimit); }, "another process works in the folder");
  }
  {
    const VectorFile touched = file_of(directory, rows.view());
    Task{touched, params}.run(disk, found, kNoLimit, true);
  }
  rows.row(599)[7] += 1;
  const VectorFile changed = file_of(directory, rows.view());
  const auto run_changed = [&] { Task{changed, params}.run(disk, found, kNoLimit); };
  expect_refusal<InvalidArgument>(run_changed, "the vectors have changed since this work began");
  disk.remove("w/sample");
  disk.remove("w/centres");
  expect_refusal<InvalidArgument>(run_changed, "the vectors have changed since this work began");
  const VectorFile fewer = file_of(directory, rows.view().slice(0, 599));
  expect_refusal<InvalidArgument>([&] { Task{fewer, params}.run(disk, found, kNoLimit); }, "rows is 599, and was 600");
  write_vectors(directory.path("a.npy"), rows.view().slice(0, 300));
  write_vectors(directory.path("b.npy"), rows.view().slice(300, 300));
  const VectorFile two = VectorFile::of_files({directory.path("b.npy"), directory.path("a.npy")});
  expect_refusal<InvalidArgument>(
      [&] {
        Task{two, params}.run(disk, found, kNoLimit);
      },
      "files is b.npy (300 rows), a.npy (300 rows), and was x.npy (600 rows)");
}

TEST(CellsOnDisk, ABadRowIsNamedByItsFile) {
  const TemporaryDirectory directory;
  auto rows = reference::make_floats(Shape::gaussian, 900, 8, 1);
  rows.row(750)[3] = std::numeric_limits<float>::quiet_NaN();
  for (int64_t part = 0; part < 3; ++part) {
    write_vectors(directory.path("p" + std::to_string(part) + ".npy"), rows.view().slice(300 * part, 300));
  }
  const VectorFile x(directory.path("p*.npy"));
  SimulatedDisk disk;
  KeptGraph found;
  expect_refusal<InvalidArgument>([&] { Task{x, by_cells(5, 8)}.run(disk, found, kNoLimit); }, "row 750");
}

TEST(CellsOnDisk, CancelledWorkGoesOn) {
  const TemporaryDirectory directory;
  const auto rows = reference::make_floats(Shape::gaussian, 3000, 24, 1);
  const VectorFile x = file_of(directory, rows.view());
  const Task task{x, by_cells(7, 40)};
  SimulatedDisk disk;
  KeptGraph found;
  for (const std::string_view stage : {"survey", "cells", "order", "compare"}) {
    const CancelToken token;
    ResourceOptions options;
    options.device = Device::cpu();
    options.threads = 2;  // as least() has
    options.host_memory_limit = task.least();
    options.cancel = token;
    options.progress = [&](const Progress& progress) {
      if (progress.stage == stage) token.request();
    };
    EXPECT_THROW(cells_on_disk(x, task.cells(), true, {disk, "w", false, 100}, found, Resources(options)), Cancelled)
        << stage;
  }
  task.run(disk, found, task.least());
  found.expect(knn_graph(rows.view(), task.params, under_limit(kNoLimit)));
}

// Through the public call, with the folder on a real disk.
TEST(CellsOnDisk, AFolderIsTheSameUnderAnyLimitAndCut) {
  const TemporaryDirectory directory;
  const auto rows = reference::make_floats(Shape::gaussian, 12'000, 160, 1);  // 7.7 MB
  write_vectors(directory.path("whole.npy"), rows.view());
  int64_t at = 0;
  for (int64_t part = 0; part < 7; ++part) {
    const int64_t end = part == 6 ? rows.view().rows() : at + 1000 + 171 * part;
    write_vectors(directory.path("part" + std::to_string(part) + ".npy"), rows.view().slice(at, end - at));
    at = end;
  }
  KnnGraphParams params = by_cells(6, 50);
  params.recall = 0.8;
  const KnnGraph truth = knn_graph(rows.view(), params, on_cpu());
  save_graph_folder(truth, directory.path("truth"), on_cpu());
  const std::string report = directory.read("truth/report.json");
  for (const auto& [name, limit] : std::vector<std::pair<std::string, int64_t>>{
           {"whole.npy", 8 << 20}, {"whole.npy", 11 << 20}, {"part*.npy", 9 << 20}, {"part*.npy", 1 << 30}}) {
    SCOPED_TRACE(name + " " + std::to_string(limit));
    const VectorFile x(directory.path(name));
    const Resources resources = under_limit(limit);
    const GraphReport made = knn_graph_folder(x, directory.path("g"), params, resources);
    EXPECT_LE(made.peak_host_bytes, limit);
    expect_same_bytes(truth, load_graph_folder(directory.path("g"), on_cpu()));
    EXPECT_EQ(directory.read("g/report.json"), report);
    EXPECT_EQ(resources.host_memory()->used(), 0);
    EXPECT_FALSE(std::filesystem::exists(directory.path("g/work")));
  }
}

// By cells where near rows lie together, by exact search where cells would compare nearly all pairs.
TEST(CellsOnDisk, AutoChoosesAsInMemory) {
  const TemporaryDirectory directory;
  for (const Shape shape : {Shape::near_duplicates, Shape::gaussian}) {
    SCOPED_TRACE(name_of(shape));
    const auto rows = reference::make_floats(shape, 12'000, 160, 1);  // 7.7 MB
    const VectorFile x = file_of(directory, rows.view());
    const KnnGraphParams params{.k = 6, .method = GraphMethod::automatic, .recall = 0.9};
    const KnnGraph truth = knn_graph(rows.view(), params, on_cpu());
    for (const int64_t limit : {8 << 20, 12 << 20}) {
      const GraphReport made = knn_graph_folder(x, directory.path("g"), params, under_limit(limit));
      EXPECT_LE(made.peak_host_bytes, limit);
      EXPECT_EQ(made.method, truth.report().method);
      expect_same_bytes(truth, load_graph_folder(directory.path("g"), on_cpu()));
      EXPECT_FALSE(std::filesystem::exists(directory.path("g/work")));
    }
  }
}

// Then each row ranks those near its own cell alone, once the rows are in order.
TEST(SlowCellsOnDisk, MoreCellsThanAreRanked) {
  const auto rows = reference::make_floats(Shape::gaussian, 17'000, 4, 1);
  KnnGraphParams params = by_cells(3, 16'400);
  params.recall = 0.6;
  expect_bytes_of_memory(rows.view(), params, 2);
}
TEST(SlowCellsOnDisk, MoreCellsThanTwoBytesNumber) {
  const auto rows = reference::make_floats(Shape::gaussian, 67'000, 4, 1);
  KnnGraphParams params = by_cells(3, 66'000);
  params.recall = 0.6;
  const TemporaryDirectory directory;
  const VectorFile x = file_of(directory, rows.view());
  const KnnGraph truth = knn_graph(rows.view(), params, under_limit(kNoLimit));
  const Task task{x, params};
  SimulatedDisk disk;
  KeptGraph found;
  task.run(disk, found, kNoLimit, false, 20'000);
  found.expect(truth);
}

TEST(CellCurve, HasEveryCellOnceAndNeighboursTogether) {
  for (const int64_t cells : {1, 2, 3, 17, 200}) {
    const auto centres = reference::make_floats(Shape::gaussian, cells, 3, 1);
    std::vector<uint32_t> order = cell_curve(centres.view());
    std::sort(order.begin(), order.end());
    for (int64_t i = 0; i < cells; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
  }
  // On a line the two halves are the two sides.
  std::vector<float> line;
  for (int i = 0; i < 64; ++i) line.push_back(static_cast<float>(i * 37 % 64));
  const std::vector<uint32_t> order = cell_curve(MatrixView(line.data(), 64, 1));
  const bool low_first = line[order[0]] < 32;
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(line[order[i]] < 32, (i < 32) == low_first) << i;
}

TEST(PieceLayout, FindsPiecesAndPlaces) {
  const std::vector<uint32_t> order{2, 0, 3, 1};
  const std::vector<int64_t> sizes{5, 0, 8, 1};
  const PieceLayout layout(order, sizes, 4);
  EXPECT_EQ(layout.pieces(), 2 + 2 + 1 + 0);
  const std::vector<int64_t> places{0, 4, 8, 12, 13, 14};
  for (int64_t piece = 0; piece <= 5; ++piece) EXPECT_EQ(layout.place(piece), places[static_cast<size_t>(piece)]);
  EXPECT_EQ(layout.cell(layout.position(3)), 0u);
  EXPECT_EQ(layout.cell(layout.position(4)), 3u);
  EXPECT_EQ(layout.rows(3), 1);
  EXPECT_EQ(layout.piece_at(12), 3);
  EXPECT_EQ(layout.piece_at(14), 5);
  EXPECT_EQ(layout.piece_at(2), -1);
  EXPECT_EQ(layout.pieces_within(0, 5, 9), 2);
  EXPECT_EQ(layout.pieces_within(0, 5, 1), 1);
  EXPECT_EQ(layout.pieces_within(2, 5, 100), 5);
  EXPECT_EQ(layout.pieces_before(5, 0, 6), 2);
  EXPECT_EQ(layout.pieces_before(5, 0, 1), 4);
  EXPECT_EQ(layout.pieces_before(5, 3, 100), 3);
}

}  // namespace
}  // namespace kith
