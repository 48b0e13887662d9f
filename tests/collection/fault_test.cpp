// Every call of the disk fails once, at each of its occurrences in a random history: what is thrown is one of Kith's
// errors, the handle goes on to read what was there, and after reopening the call is there in full or not at all.
#include <kith/collection.hpp>

#include <kith/error.hpp>

#include "collection/simulated_collection.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <optional>
#include <string>

namespace kith {
namespace {

using namespace kith::testing;

const std::string kFaultyPath = "disk/c";

// Empty, or what is wrong. `calls` becomes the number of calls of the disk.
std::string faulty_history(uint64_t seed, int operations, const std::optional<SimulatedDisk::Fault>& fault, int64_t shortest,
                           int64_t* calls) {
  SimulatedDisk disk;
  const SimulatedVfs vfs(disk);
  const CollectionEnvironment environment = on_disk(disk, vfs);
  disk.set_shortest(shortest);
  disk.set_fault(fault.value_or(SimulatedDisk::Fault{INT64_MAX, EIO, {}}));
  CollectionModel model;
  CollectionModel attempted;
  Draw draw(seed);
  std::optional<Collection> c;
  // Once the fault is over everything works.
  const auto opened = [&] {
    for (int tries = 0; !c; ++tries) {
      try {
        c = disk.exists(kFaultyPath + "/collection.sqlite")
                ? CollectionAccess::open(kFaultyPath, {}, environment)
                : CollectionAccess::create(kFaultyPath, model_params(), {}, environment);
      } catch (const Error&) {
        if (tries > 1) throw;
      }
    }
  };
  try {
    opened();
    for (int i = 0; i < operations; ++i) {
      try {
        random_call(*c, model, draw, &attempted);
        if (draw.one_in(8)) {
          attempted = model;
          c->close();
          c.reset();
          opened();
        }
        continue;
      } catch (const Error&) {
      }
      if (c && !c->closed()) {
        if (!model_of(c->view()).same_items(model)) return "after an error the handle reads something else";
        try {
          c->close();
        } catch (const Error&) {
        }
      }
      c.reset();
      opened();
      const CollectionModel found = model_of(c->view());
      if (!found.same_items(model)) {
        if (!found.same_items(attempted)) return "after an error and reopening a call is there in part";
        model = attempted;
      }
    }
    *calls = disk.calls();
    c.reset();
    opened();
    if (!model_of(c->view()).same_items(model)) return "at the end something else is there";
    const VerifyReport report = c->verify();
    if (!report.sound()) return report.problems.front().file + ": " + report.problems.front().reason;
  } catch (const std::exception& error) {
    return std::string("not handled: ") + error.what();
  }
  return "";
}

void fail_every_call(int operations, int64_t step) {
  constexpr uint64_t kSeed = 5;
  int64_t calls = 0;
  ASSERT_EQ(faulty_history(kSeed, operations, std::nullopt, INT64_MAX, &calls), "");
  for (const int code : {EIO, ENOSPC, EINTR}) {
    for (int64_t at = code % step; at < calls; at += step) {
      int64_t ignored = 0;
      ASSERT_EQ(faulty_history(kSeed, operations, SimulatedDisk::Fault{at, code, {}}, INT64_MAX, &ignored), "")
          << "call " << at << " fails with " << code;
    }
  }
}

TEST(CollectionFaults, LoseNothing) { fail_every_call(25, 17); }
TEST(SlowCollectionFaults, LoseNothing) { fail_every_call(200, 1); }

TEST(CollectionFaults, ShortReadsAndWritesAreWhole) {
  for (const int64_t shortest : {1, 7, 100}) {
    int64_t calls = 0;
    EXPECT_EQ(faulty_history(3, 10, std::nullopt, shortest, &calls), "");
  }
}

TEST(CollectionFaults, AFailedSyncEndsWritesAndNotReads) {
  SimulatedDisk disk;
  const SimulatedVfs vfs(disk);
  Collection c = CollectionAccess::create(kFaultyPath, model_params(), {}, on_disk(disk, vfs));
  Draw draw(1);
  ModelBatch batch = model_batch({{1, random_item(draw)}});
  c.add(with_vectors(batch));
  disk.set_fault({0, EIO, DiskCall::sync});
  batch.items.ids = ItemIds({2});
  EXPECT_THROW(c.add(with_vectors(batch)), IoError);
  EXPECT_THROW(c.add(with_vectors(batch)), InvalidState);
  EXPECT_EQ(c.ids().numbers(), std::vector<int64_t>{1});
}

TEST(CollectionFaults, AFullDiskIsAnErrorAndRoomMakesItGoOn) {
  SimulatedDisk disk;
  const SimulatedVfs vfs(disk);
  Collection c = CollectionAccess::create(kFaultyPath, model_params(), {}, on_disk(disk, vfs));
  Draw draw(1);
  CollectionModel model;
  constexpr int64_t kRoom = 400'000;
  disk.set_capacity(kRoom);
  bool full = false;
  for (int64_t id = 0; !full; id += 20) {
    std::vector<std::pair<int64_t, ModelItem>> items;
    for (int64_t i = id; i < id + 20; ++i) items.emplace_back(i, random_item(draw));
    for (auto& [i, item] : items) item.payload = std::string(500, 'x');
    ModelBatch batch = model_batch(items);
    try {
      c.add(with_vectors(batch));
      for (const auto& [i, item] : items) model.put(i, item);
    } catch (const IoError& error) {
      EXPECT_EQ(error.code(), ENOSPC);
      full = true;
    }
  }
  EXPECT_TRUE(model_of(c.view()).same_items(model));
  disk.set_capacity(10 * kRoom);
  ModelBatch batch = model_batch({{1 << 20, random_item(draw)}});
  c.add(with_vectors(batch));
  EXPECT_EQ(c.size(), static_cast<int64_t>(model.items.size()) + 1);
  EXPECT_TRUE(c.verify().sound());
}

TEST(CollectionFaults, ManyOpeningsLeaveFewSegments) {
  SimulatedDisk disk;
  const SimulatedVfs vfs(disk);
  const CollectionEnvironment environment = on_disk(disk, vfs);
  CollectionAccess::create(kFaultyPath, model_params(), {}, environment).close();
  Draw draw(2);
  for (int64_t id = 0; id < 200; ++id) {
    Collection c = CollectionAccess::open(kFaultyPath, {}, environment);
    ModelBatch batch = model_batch({{id, random_item(draw)}});
    c.add(with_vectors(batch));
    c.close();
    ASSERT_LE(disk.list(kFaultyPath + "/segments").size(), 2U) << id;
  }
}

}  // namespace
}  // namespace kith
