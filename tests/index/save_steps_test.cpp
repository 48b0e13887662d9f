// Indexes that are written in steps: the bytes of memory, after crashes at any call, beside damaged steps, under any limit.
#include "index/save_steps.hpp"

#include <kith/error.hpp>
#include <kith/index_work.hpp>

#include "index/index_check.hpp"
#include "io/simulated_disk.hpp"
#include "io/temporary_directory.hpp"
#include "io/thrown.hpp"
#include "reference/data.hpp"
#include "reference/sanitized.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;
using testing::Crash;
using testing::expect_refusal;
using testing::Loss;
using testing::SimulatedDisk;
using testing::TemporaryDirectory;
using testing::thrown;

constexpr int64_t kStepsRows = 3000;
constexpr int64_t kStepsCols = 16;
constexpr int64_t kStepRows = 450;

class Steps : public ::testing::Test {
 protected:
  Steps() : rows(make_floats(Shape::gaussian, kStepsRows, kStepsCols, 5)) { write(); }

  void write() const { write_vectors(directory.path("x.npy"), rows.view()); }
  VectorFile file() const { return VectorFile(directory.path("x.npy")); }

  // The bytes of the file that the index in memory saves.
  std::string expected(const std::string& factory, const std::vector<int64_t>& ids = {}) const {
    Index index(factory);
    index.train(file(), on_cpu());
    index.add(file(), view(ids), on_cpu());
    index.save(directory.path("whole.kith"), on_cpu());
    return directory.read("whole.kith");
  }
  std::string found() const { return directory.read("steps.kith"); }

  // From a new index, which is trained as a step.
  void build(const std::string& factory, SimulatedDisk& disk, int64_t limit = kNoLimit, bool keep = false,
             const std::vector<int64_t>& ids = {}, int64_t step_rows = kStepRows) const {
    const VectorFile x = file();
    save_in_steps({Index(factory), x, view(ids), directory.path("steps.kith")}, {"w", keep, &x}, disk, step_rows,
                  on_cpu(limit));
  }

  TemporaryDirectory directory;
  reference::Matrix<float> rows;
};

std::vector<std::string> steps_in(SimulatedDisk& disk) {
  std::vector<std::string> names = disk.list("w");
  std::erase_if(names, [](const std::string& name) { return name == "manifest" || name == "lock"; });
  return names;
}

TEST_F(Steps, GiveTheBytesOfMemory) {
  std::vector<int64_t> ids(static_cast<size_t>(kStepsRows));
  std::iota(ids.rbegin(), ids.rend(), 100);
  for (const std::string factory : {"Flat", "IVF20,SQ8", "PQ4", "OPQ4,IVF8,PQ4,RFlat"}) {
    SCOPED_TRACE(factory);
    const std::string truth = expected(factory);
    const std::string truth_with_ids = expected(factory, ids);
    for (const int64_t step_rows : {kStepRows, int64_t{60}, int64_t{0}}) {  // 60: more steps than are open at a time
      SimulatedDisk disk;
      build(factory, disk, kNoLimit, true, {}, step_rows);
      EXPECT_EQ(found(), truth) << step_rows;
      EXPECT_LE(steps_in(disk).size(), 40u);
      build(factory, disk, kNoLimit, false, {}, step_rows);  // all is done: it is written once more
      EXPECT_EQ(found(), truth) << step_rows;
      EXPECT_TRUE(disk.list("w").empty());
    }
    SimulatedDisk disk;
    build(factory, disk, kNoLimit, false, ids);
    EXPECT_EQ(found(), truth_with_ids);
  }
}

TEST_F(Steps, GoOnAfterACrashAtAnyCallWithAnotherLimit) {
  const int64_t apart = reference::fewer_if_sanitized(7, 29);
  for (const std::string factory : {"Flat", "IVF20,SQ8"}) {
    const std::string truth = expected(factory);
    int64_t crashes = 0;
    for (int64_t call = 0;; call += apart) {
      SimulatedDisk disk;
      disk.set_fault({.at = call, .code = 0, .kind = {}});
      std::filesystem::remove(directory.path("steps.kith"));
      try {
        build(factory, disk);
        break;
      } catch (const Crash&) {
        ++crashes;
      }
      disk.crash(crashes % 2 == 0 ? Loss::all_that_is_not_synced : Loss::bytes_that_are_not_synced);
      build(factory, disk, 40'000'000, false, {}, 700);
      ASSERT_EQ(found(), truth) << factory << " after a crash at call " << call;
      EXPECT_TRUE(disk.list("w").empty());
    }
    EXPECT_GT(crashes, 5);
  }
}

// Steps that are there are not made again.
TEST_F(Steps, FinishedStepsStay) {
  SimulatedDisk disk;
  build("IVF20,SQ8", disk, kNoLimit, true);
  const std::string truth = found();
  disk.remove("w/rows-900-1350");
  const std::string before = disk.content("w/rows-0-450");
  disk.set_watch([&] { EXPECT_EQ(disk.content("w/rows-0-450"), before); });
  build("IVF20,SQ8", disk, kNoLimit, true, {}, 200);  // the gap in other steps
  disk.set_watch({});
  EXPECT_EQ(found(), truth);
  EXPECT_THAT(steps_in(disk), ::testing::IsSupersetOf({"rows-0-450", "rows-900-1100", "rows-1100-1300", "rows-1300-1350",
                                                       "survey", "trained"}));
}

TEST_F(Steps, DamagedAndExchangedStepsAreMadeAgain) {
  const std::string factory = "IVF20,SQ8";
  const std::string truth = expected(factory);
  SimulatedDisk disk;
  build(factory, disk, kNoLimit, true);
  for (const std::string& name : steps_in(disk)) {
    for (const double where : {0.0, 0.3, 0.5, 0.8, 1.0}) {
      SCOPED_TRACE(name + " at " + std::to_string(where));
      if (!disk.exists("w/" + name)) continue;
      std::string bytes = disk.content("w/" + name);
      bytes[static_cast<size_t>(where * static_cast<double>(bytes.size() - 1))] ^= 4;
      disk.set_content("w/" + name, bytes);
      build(factory, disk, kNoLimit, true);
      ASSERT_EQ(found(), truth);
    }
  }
  const std::string first = disk.content("w/rows-0-450");
  disk.set_content("w/rows-0-450", disk.content("w/rows-450-900"));
  disk.set_content("w/rows-450-900", first);
  build(factory, disk);
  EXPECT_EQ(found(), truth);
}

TEST_F(Steps, WhatDoesNotBelongTogetherIsRefused) {
  SimulatedDisk disk;
  build("IVF20,SQ8", disk, kNoLimit, true);
  expect_refusal<InvalidArgument>([&] { build("IVF20,PQ4", disk); }, "factory is IVF20,PQ4, and was IVF20,SQ8");
  const std::vector<int64_t> ids(static_cast<size_t>(kStepsRows), 7);
  expect_refusal<InvalidArgument>([&] { build("IVF20,SQ8", disk, kNoLimit, false, ids); }, "and was row numbers");
  Index trained("IVF20,SQ8");
  trained.train(file(), on_cpu());
  expect_refusal<InvalidArgument>(
      [&] {
        save_in_steps({trained, file(), {}, directory.path("steps.kith")}, {.folder = "w"}, disk, kStepRows, on_cpu());
      },
      "and was to be trained");
  expect_refusal<Unsupported>([&] { build("Graph16", disk); }, "graph index");
  {
    const auto lock = disk.try_lock("w/lock", LockKind::alone);
    expect_refusal<InvalidState>([&] { build("IVF20,SQ8", disk); }, "another process works in the folder 'w'");
  }
  rows.row(2999)[3] += 1;
  write();
  expect_refusal<InvalidArgument>([&] { build("IVF20,SQ8", disk); }, "the vectors have changed since this work began");
  rows.row(2999)[3] -= 1;
  write();  // touched, and the same
  build("IVF20,SQ8", disk);
  EXPECT_EQ(found(), expected("IVF20,SQ8"));
  SimulatedDisk other;
  expect_refusal<InvalidState>(
      [&] { save_in_steps({Index("IVF20,SQ8"), file(), {}, "x.kith"}, {.folder = "w"}, other, 0, on_cpu()); },
      "must be trained");
}

TEST_F(Steps, AFullDiskIsAnErrorAndThenGoesOn) {
  SimulatedDisk disk;
  disk.set_capacity(60'000);
  const auto full = thrown<IoError>([&] { build("Flat", disk); });
  ASSERT_TRUE(full);
  EXPECT_EQ(full->code(), ENOSPC);
  disk.set_capacity(int64_t{1} << 30);
  build("Flat", disk);
  const std::string truth = expected("Flat");
  EXPECT_EQ(found(), truth);
  for (const testing::DiskCall kind : {testing::DiskCall::write, testing::DiskCall::sync, testing::DiskCall::rename,
                                       testing::DiskCall::read}) {
    SimulatedDisk failing;
    failing.set_shortest(4000);  // bytes of a read or write
    failing.set_fault({.at = 3, .code = EIO, .kind = kind});
    const auto failed = thrown<IoError>([&] { build("Flat", failing); });
    ASSERT_TRUE(failed);
    EXPECT_EQ(failed->code(), EIO);
    failing.clear_fault();
    build("Flat", failing);
    EXPECT_EQ(found(), truth);
  }
}

// An index with rows grows: one in memory, whose rows are a step too, and one in files, which stay where they are.
TEST_F(Steps, AnIndexWithRowsGrows) {
  write_vectors(directory.path("first.npy"), rows.view().slice(0, 1000));
  write_vectors(directory.path("more.npy"), rows.view().slice(1000, 2000));
  for (const std::string factory : {"Flat", "IVF20,SQ8"}) {
    SCOPED_TRACE(factory);
    Index index(factory);
    index.train(VectorFile(directory.path("x.npy")), on_cpu());
    index.add(VectorFile(directory.path("first.npy")), {}, on_cpu());
    index.save(directory.path("first.kith"), on_cpu());
    const VectorFile more(directory.path("more.npy"));
    index.save_added(more, {}, directory.path("whole.kith"), on_cpu());
    const std::string truth = directory.read("whole.kith");
    const Index on_disk = Index::load(directory.path("first.kith"), {.mmap = true}, on_cpu());
    for (const Index* each : {static_cast<const Index*>(&index), &on_disk}) {
      for (int64_t call = 0;; call += reference::fewer_if_sanitized(11, 37)) {
        SimulatedDisk disk;
        disk.set_fault({.at = call, .code = 0, .kind = {}});
        const auto run = [&] {
          save_in_steps({*each, more, {}, directory.path("steps.kith")}, {.folder = "w"}, disk, kStepRows, on_cpu());
        };
        bool crashed = false;
        try {
          run();
        } catch (const Crash&) {
          crashed = true;
          disk.crash(Loss::all_that_is_not_synced);
          run();
        }
        ASSERT_EQ(found(), truth) << call;
        if (!crashed) break;
      }
    }
  }
}

// Through the public call: a folder on the disk, whatever the limit, and none.
TEST_F(Steps, ThePublicCall) {
  const std::string truth = expected("IVF20,SQ8");
  const VectorFile x = file();
  int64_t limit = 100'000;
  for (; limit < 100'000'000; limit *= 2) {
    const std::string work = directory.path("work");
    try {
      save_added(Index("IVF20,SQ8"), x, {}, directory.path("steps.kith"), {.folder = work, .train = &x}, on_cpu(limit));
      break;
    } catch (const OutOfMemory&) {
    }
  }
  EXPECT_EQ(found(), truth);
  EXPECT_LT(limit, 20'000'000);
  EXPECT_TRUE(std::filesystem::is_empty(directory.path("work")));
  save_added(Index("IVF20,SQ8"), x, {}, directory.path("steps.kith"), {.train = &x}, on_cpu());
  EXPECT_EQ(found(), truth);
}

}  // namespace
}  // namespace kith
