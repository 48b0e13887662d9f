// Power loss: after every call of a random history that changes something on the disk, what the disk may hold then (any
// subset of the unsynced writes, torn at 512 bytes, and of the unsynced changes of names) is opened and compared with a
// model: every call that returned is there, the one under way is whole or absent, and the collection can be written to.
//
// And the proof that the test sees mistakes: each sync in Kith's code left out, and steps of a fold in another order, make
// it fail.
#include <kith/collection.hpp>

#include <kith/error.hpp>

#include "collection/simulated_collection.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace kith {
namespace {

using namespace kith::testing;

const std::string kPath = "disk/c";

struct Losses {
  int64_t states = 0;
  std::string first_wrong;  // empty: none
};

// What must hold of a state: the collection is one of these (none: it may be missing), is sound, and can be written to.
std::string wrong_with(const SimulatedDisk::Content& content, const std::string& path,
                       const std::vector<const CollectionModel*>& allowed, bool may_be_missing, uint64_t seed) {
  SimulatedDisk disk(content);
  const SimulatedVfs vfs(disk);
  const CollectionEnvironment environment = on_disk(disk, vfs);
  try {
    if (!disk.exists(path + "/collection.sqlite")) {
      if (!may_be_missing) return "the collection is gone";
      (void)CollectionAccess::create(path, model_params(), {}, environment);
      return "";
    }
    Collection c = CollectionAccess::open(path, {}, environment);
    const CollectionModel found = model_of(c.view());
    const CollectionModel* same = nullptr;
    for (const CollectionModel* model : allowed) {
      if (found.same_items(*model) && found.ids_in_order() == model->ids_in_order()) same = model;
    }
    if (same == nullptr) {
      return "it holds " + std::to_string(found.items.size()) + " items, and should hold " +
             std::to_string(allowed.front()->items.size()) + " or " + std::to_string(allowed.back()->items.size());
    }
    const VerifyReport report = c.verify();
    if (!report.sound()) return report.problems.front().file + ": " + report.problems.front().reason;
    // A write, a fold, and the same once more after reopening.
    Draw draw(seed);
    std::vector<std::pair<int64_t, ModelItem>> items{{1'000'000, random_item(draw)}};
    ModelBatch batch = model_batch(items);
    CollectionModel next = *same;
    next.put(items[0].first, items[0].second);
    c.add(with_vectors(batch));
    if (draw.one_in(2)) c.fold();
    c.close();
    const Collection again = CollectionAccess::open(path, {}, environment);
    if (!model_of(again.view()).same_items(next)) return "what was written afterwards is not there";
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

// One history. `states_a_call`: how many states are looked at after each call of the disk.
Losses lose_power(uint64_t seed, int calls, int states_a_call, DurableStep left_out, int swapped, SyncMode sync) {
  Losses losses;
  SimulatedDisk disk;
  disk.make_folder("disk");
  disk.sync_folder("");
  const SimulatedVfs vfs(disk);
  CollectionEnvironment environment = on_disk(disk, vfs);
  environment.left_out = left_out;
  environment.swapped = swapped;
  std::vector<CollectionModel> models(1);  // of each call that returned
  size_t synced = 0;                       // the oldest of them that a crash may leave
  CollectionModel attempted;
  bool created = false;
  Draw chooses(seed * 7919 + 13);
  Draw draw(seed);
  std::string path = kPath;
  bool snapshot_done = false;
  const auto look = [&] {
    if (!losses.first_wrong.empty()) return;
    for (int i = 0; i < states_a_call; ++i) {
      const SimulatedDisk::Content content = disk.crash_state([&](int64_t n) { return chooses.below(n); });
      std::vector<const CollectionModel*> allowed;
      for (size_t m = synced; m < models.size(); ++m) allowed.push_back(&models[m]);
      allowed.push_back(&attempted);
      std::string wrong = wrong_with(content, kPath, allowed, !created, seed + static_cast<uint64_t>(i));
      if (wrong.empty() && snapshot_done) {
        wrong = wrong_with(content, "disk/copy", {&models.back()}, false, seed);
        if (!wrong.empty()) wrong = "the snapshot: " + wrong;
      }
      ++losses.states;
      if (wrong.empty()) continue;
      losses.first_wrong = "seed " + std::to_string(seed) + ", state " + std::to_string(losses.states) + ": " + wrong;
      return;
    }
  };
  disk.set_watch(look);
  try {
    OpenParams params;
    params.sync = sync;
    Collection c = CollectionAccess::create(kPath, model_params(), params, environment);
    created = true;
    look();
    for (int call = 0; call < calls; ++call) {
      // random_call changes the last model in place, once the call has returned; those before may be what is left.
      if (sync == SyncMode::later) models.push_back(models.back());
      random_call(c, models.back(), draw, &attempted);
      attempted = models.back();
      if (sync == SyncMode::now) synced = models.size() - 1;
      look();
      if (draw.one_in(6)) {
        c.close();
        synced = models.size() - 1;
        look();
        c = CollectionAccess::open(kPath, params, environment);
      }
      if (draw.one_in(25) && !snapshot_done) {
        c.snapshot("disk/copy");
        snapshot_done = true;
        look();
        snapshot_done = false;
        disk.set_watch({});
        for (const auto& [name, bytes] : disk.content()) {
          if (name.starts_with("disk/copy/") && !name.ends_with('/')) disk.remove(name);
        }
        disk.sync_folder("disk/copy");
        disk.sync_folder("disk/copy/segments");
        disk.set_watch(look);
      }
      if (!losses.first_wrong.empty()) break;
    }
  } catch (const std::exception& error) {
    if (losses.first_wrong.empty()) losses.first_wrong = error.what();
  }
  disk.set_watch({});
  return losses;
}

int64_t states_wanted(const char* variable, int64_t otherwise) {
  const char* const given = std::getenv(variable);
  return given == nullptr ? otherwise : std::atoll(given);
}

void run_histories(int64_t wanted, SyncMode sync, uint64_t first_seed = 1, uint64_t seeds_apart = 1) {
  int64_t states = 0;
  for (uint64_t seed = first_seed; states < wanted; seed += seeds_apart) {
    const Losses losses = lose_power(seed, 20, 1, DurableStep::none, -1, sync);
    ASSERT_EQ(losses.first_wrong, "");
    states += losses.states;
  }
  ::testing::Test::RecordProperty("states", static_cast<int>(states));
}

TEST(CollectionPowerLoss, LeavesWhatWasAcknowledged) { run_histories(3000, SyncMode::now); }
TEST(CollectionPowerLoss, LeavesABeginningOfWhatIsSyncedLater) { run_histories(500, SyncMode::later); }

constexpr int kPowerLossParts = 16;  // of the long test, which may run side by side

class SlowCollectionPowerLoss : public ::testing::TestWithParam<int> {};

TEST_P(SlowCollectionPowerLoss, LeavesWhatWasAcknowledged) {
  const int64_t wanted = states_wanted("KITH_POWER_LOSS_STATES", 100'000);
  run_histories((wanted + kPowerLossParts - 1) / kPowerLossParts, SyncMode::now, 1 + static_cast<uint64_t>(GetParam()), kPowerLossParts);
}
INSTANTIATE_TEST_SUITE_P(, SlowCollectionPowerLoss, ::testing::Range(0, kPowerLossParts));

// The number of histories after which the mistake was seen; 0: never.
int seen_after(DurableStep left_out, int swapped, int histories) {
  for (int i = 1; i <= histories; ++i) {
    const Losses losses = lose_power(static_cast<uint64_t>(1000 + i), 20, 2, left_out, swapped, SyncMode::now);
    if (!losses.first_wrong.empty()) return i;
  }
  return 0;
}

TEST(CollectionPowerLoss, SeesEachSyncThatIsLeftOut) {
  for (const DurableStep step : {DurableStep::sync_new_database, DurableStep::sync_new_folder, DurableStep::sync_parent_folder,
                                 DurableStep::sync_segment, DurableStep::sync_segments_folder}) {
    EXPECT_GT(seen_after(step, -1, 40), 0) << "left out: " << static_cast<int>(step);
  }
}

// The steps: 0 create, 1 write, 2 sync, 3 rename, 4 sync of the folder, 5 commit, 6 deletion of what was replaced. 0 and 1
// cannot be exchanged; 2 and 3 may be: what counts is that both are done before the commit.
TEST(CollectionPowerLoss, SeesStepsOfAFoldInAnotherOrder) {
  for (const int first : {1, 3, 4, 5}) EXPECT_GT(seen_after(DurableStep::none, first, 40), 0) << "exchanged: " << first;
}

}  // namespace
}  // namespace kith
