// Every call of the disk fails once, at each of its occurrences in a random history: what is thrown is one of Kith's
// errors, the handle goes on to read what was there, and after reopening the call is there in full or not at all.
#include <kith/collection.hpp>

#include <kith/error.hpp>

#include "collection/simulated_collection.hpp"
#include "reference/sanitized.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>

namespace kith {
namespace {

using namespace kith::testing;

const std::string kFaultyPath = "disk/c";

// What fails a call of the disk.
struct Failure {
  const char* name;
  int code;
  bool half;
};
constexpr Failure kFailures[] = {{"EIO", EIO, false},
                                 {"ENOSPC", ENOSPC, false},
                                 {"EINTR", EINTR, false},
                                 {"a short read or write", SimulatedDisk::kNoError, true},
                                 {"half of it, then ENOSPC", ENOSPC, true}};

// A random history with batches, snapshots and a reader, in which one call of the disk fails. Throws what Kith must not
// throw; else empty, or what is wrong.
class FaultyHistory {
 public:
  FaultyHistory(uint64_t seed, const SimulatedDisk::Fault& fault)
      : vfs_(disk_), environment_(on_disk(disk_, vfs_)), draw_(seed), fault_at_(fault.at) {
    disk_.set_fault(fault);
  }

  SimulatedDisk& disk() { return disk_; }

  std::string run(int operations) {
    reopen();
    for (int i = 0; i < operations && left_ > 0; ++i) {
      // What comes long after the failure, and after everything was compared, would show nothing new.
      if (disk_.calls() > fault_at_) --left_;
      const std::string wrong = step("disk/copy-" + std::to_string(i));
      if (!wrong.empty()) return "operation " + std::to_string(i) + ": " + wrong;
    }
    c_.reset();
    disk_.clear_fault();
    reopen();
    if (!holds(c_->view(), model_)) return "at the end something else is there";
    const VerifyReport report = c_->verify();
    return report.sound() ? "" : report.problems.front().file + ": " + report.problems.front().reason;
  }

 private:
  static bool holds(const CollectionView& view, const CollectionModel& model) { return model_of(view).same_items(model); }

  // Once the fault is over everything works.
  void reopen() {
    for (int tries = 0; !c_; ++tries) {
      try {
        c_ = disk_.exists(kFaultyPath + "/collection.sqlite")
                 ? CollectionAccess::open(kFaultyPath, {}, environment_)
                 : CollectionAccess::create(kFaultyPath, model_params(), {}, environment_);
      } catch (const Error&) {
        if (tries > 1) throw;
      }
    }
  }

  void call_something(const std::string& copy) {
    attempted_ = model_;
    const int64_t kind = draw_.below(16);
    if (kind == 0) {
      c_->snapshot(copy);
      const Collection snapshot = CollectionAccess::open(copy, {.mode = OpenMode::read}, environment_);
      EXPECT_TRUE(holds(snapshot.view(), model_));
    } else if (kind == 1) {
      CollectionModel next = model_;
      CollectionBatch batch = c_->batch();
      for (int i = 0; i < 3; ++i) random_call(*c_, next, draw_, nullptr, true);
      attempted_ = next;
      batch.commit();
      model_ = next;
    } else if (kind == 2) {
      const Collection reader = CollectionAccess::open(kFaultyPath, {.mode = OpenMode::read}, environment_);
      EXPECT_TRUE(holds(reader.view(), model_));
    } else if (kind == 3) {
      c_->close();
      c_.reset();
      reopen();
    } else {
      random_call(*c_, model_, draw_, &attempted_);
    }
  }

  std::string step(const std::string& copy) {
    try {
      call_something(copy);
      return "";
    } catch (const Error&) {
    }
    if (c_ && !c_->closed()) {
      if (!holds(c_->view(), model_)) return "after an error the handle reads something else";
      try {
        c_->close();
      } catch (const Error&) {
      }
    }
    c_.reset();
    reopen();
    if (!holds(c_->view(), model_)) {
      if (!holds(c_->view(), attempted_)) return "after an error and reopening a call is there in part";
      model_ = attempted_;
    }
    // A snapshot that failed is whole, or can be made again at the same place.
    if (!disk_.exists(copy)) return "";
    if (!disk_.exists(copy + "/collection.sqlite")) c_->snapshot(copy);
    const Collection snapshot = CollectionAccess::open(copy, {.mode = OpenMode::read}, environment_);
    return holds(snapshot.view(), model_) ? "" : "the snapshot holds something else";
  }

  SimulatedDisk disk_;
  SimulatedVfs vfs_;
  CollectionEnvironment environment_;
  CollectionModel model_;
  CollectionModel attempted_;
  Draw draw_;
  std::optional<Collection> c_;
  int64_t fault_at_;
  int left_ = 6;  // operations after the failure
};

std::string faulty_history(uint64_t seed, int operations, const SimulatedDisk::Fault& fault, int64_t* calls = nullptr,
                           int64_t shortest = INT64_MAX) {
  FaultyHistory history(seed, fault);
  history.disk().set_shortest(shortest);
  try {
    const std::string wrong = history.run(operations);
    if (calls != nullptr) *calls = history.disk().calls();
    return wrong;
  } catch (const std::exception& error) {
    return std::string("not handled: ") + error.what();
  }
}

constexpr SimulatedDisk::Fault kNoFault{INT64_MAX, EIO, {}, false, true};

// Each failure at each of the calls of a history, or at some of them, spread over all; of these one part of `parts`.
void fail_every_call(uint64_t seed, int operations, int64_t most, int64_t part = 0, int64_t parts = 1) {
  int64_t calls = 0;
  ASSERT_EQ(faulty_history(seed, operations, kNoFault, &calls), "");
  ASSERT_GT(calls, 10 * operations);
  const int64_t step = std::max<int64_t>(1, calls / most);
  int64_t cases = 0;
  int64_t offset = 0;
  for (const Failure& failure : kFailures) {
    for (int64_t at = offset++ % step + part * step; at < calls; at += parts * step, ++cases) {
      ASSERT_EQ(faulty_history(seed, operations, {at, failure.code, {}, failure.half, true}), "")
          << "call " << at << " fails: " << failure.name;
    }
  }
  ::testing::Test::RecordProperty("calls", static_cast<int>(calls));
  ::testing::Test::RecordProperty("cases", static_cast<int>(cases));
}

TEST(CollectionFaults, LoseNothing) { fail_every_call(5, 60, reference::fewer_if_sanitized(100, 10)); }

constexpr int kFaultParts = 64;  // of the long tests, which may run side by side

class SlowCollectionFaults : public ::testing::TestWithParam<int> {};

TEST_P(SlowCollectionFaults, LoseNothing) { fail_every_call(5, 200, INT64_MAX, GetParam(), kFaultParts); }
INSTANTIATE_TEST_SUITE_P(, SlowCollectionFaults, ::testing::Range(0, kFaultParts));

TEST(CollectionFaults, ShortReadsAndWritesAreWhole) {
  for (const int64_t shortest : {1, 7, 100}) EXPECT_EQ(faulty_history(3, 10, kNoFault, nullptr, shortest), "");
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
