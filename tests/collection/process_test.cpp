// Real processes: a writer that is killed at random moments while two others read; and many threads on one handle.
#include <kith/collection.hpp>

#include <kith/error.hpp>

#include "collection/collection_access.hpp"
#include "collection/collection_model.hpp"
#include "io/temporary_directory.hpp"
#include "reference/sanitized.hpp"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace kith {
namespace {

using namespace kith::testing;

CollectionEnvironment killed_environment() {
  CollectionEnvironment environment;
  environment.fold_bytes = 100 * kModelDimension * 4;
  environment.segment_bytes = 11 * kModelDimension * 4;
  environment.least_dropped = 16;
  return environment;
}

// What operation i does: most add a batch whose items have the year i, some remove one, some tidy up.
constexpr int64_t kNoBatch = -1;
int64_t added_by(int64_t i) { return i % 5 == 4 || i % 17 == 0 || i % 41 == 0 ? kNoBatch : i; }
int64_t removed_by(int64_t i) { return i % 5 == 4 ? i - 3 : kNoBatch; }
int64_t items_in_batch(int64_t i) { return 1 + i * 7 % 13; }

void operate(Collection& c, int64_t i) {
  if (removed_by(i) != kNoBatch) {
    ItemFilter filter;
    filter.where = "year = ?";
    filter.params = {removed_by(i)};
    c.remove(filter);
  } else if (added_by(i) != kNoBatch) {
    Draw draw(static_cast<uint64_t>(i));
    std::vector<std::pair<int64_t, ModelItem>> items;
    for (int64_t k = 0; k < items_in_batch(i); ++k) {
      items.emplace_back(i * 100 + k, random_item(draw));
      items.back().second.year = i;
    }
    ModelBatch batch = model_batch(items);
    c.add(with_vectors(batch));
  } else if (i % 41 == 0) {
    c.compact();
  } else {
    c.fold();
  }
}

std::map<int64_t, int64_t> batches_after(int64_t operations) {
  std::map<int64_t, int64_t> batches;
  for (int64_t i = 0; i < operations; ++i) {
    if (added_by(i) != kNoBatch) batches[i] = items_in_batch(i);
    if (removed_by(i) != kNoBatch) batches.erase(removed_by(i));
  }
  return batches;
}

std::map<int64_t, int64_t> batches_in(const CollectionView& view) {
  std::map<int64_t, int64_t> batches;
  const ItemTable table = view.get(view.ids());
  for (const ColumnValue& year : table.columns[0].values) ++batches[std::get<int64_t>(year)];
  return batches;
}

// Reads until `stop` is there; 0 if every version held whole batches.
int read_on(const std::string& path, const std::string& stop) {
  try {
    OpenParams params;
    params.mode = OpenMode::read;
    Collection c = CollectionAccess::open(path, params, killed_environment());
    while (::access(stop.c_str(), F_OK) != 0) {
      c.refresh();
      for (const auto& [batch, items] : batches_in(c.view())) {
        if (items != items_in_batch(batch)) return 2;
      }
      const std::vector<float> query{1, 2, 3, 4};
      (void)c.search(MatrixView(query.data(), 1, kModelDimension));
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "a reader failed: %s\n", error.what());
    return 3;
  }
}

template <typename Work>
pid_t forked(const Work& work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  return child;
}

void kill_writers(int kills, uint64_t seed = 1) {
  const TemporaryDirectory directory;
  const std::string path = directory.path("c");
  const std::string stop = directory.path("stop");
  CollectionAccess::create(path, model_params(), {}, killed_environment()).close();
  std::vector<pid_t> readers;
  for (int i = 0; i < 2; ++i) readers.push_back(forked([&] { return read_on(path, stop); }));
  Draw draw(seed);
  int64_t done = 0;
  for (int kill = 0; kill < kills; ++kill) {
    int acknowledged[2];
    ASSERT_EQ(::pipe(acknowledged), 0);
    const pid_t writer = forked([&] {
      try {
        OpenParams params;
        params.timeout = std::chrono::seconds(60);
        Collection c = CollectionAccess::open(path, params, killed_environment());
        for (int64_t i = done;; ++i) {
          operate(c, i);
          if (::write(acknowledged[1], &i, sizeof(i)) != sizeof(i)) return 1;
        }
      } catch (const std::exception& error) {
        std::fprintf(stderr, "the writer failed: %s\n", error.what());
        return 1;
      }
    });
    ::close(acknowledged[1]);
    // Some time after the first operation, so that each life gets somewhere.
    int64_t last = 0;
    if (::read(acknowledged[0], &last, sizeof(last)) == sizeof(last)) done = last + 1;
    std::this_thread::sleep_for(std::chrono::microseconds(draw.below(20'000)));
    ::kill(writer, SIGKILL);
    int status = 0;
    ::waitpid(writer, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the writer ended by itself";
    while (::read(acknowledged[0], &last, sizeof(last)) == sizeof(last)) done = last + 1;
    ::close(acknowledged[0]);
    OpenParams reading;
    reading.mode = OpenMode::read;
    const auto found = batches_in(CollectionAccess::open(path, reading, killed_environment()).view());
    if (found != batches_after(done)) {
      ASSERT_EQ(found, batches_after(done + 1)) << "after kill " << kill << " and " << done << " operations";
      ++done;
    }
  }
  directory.write("stop", "");
  for (const pid_t reader : readers) {
    int status = 0;
    ::waitpid(reader, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "a reader ended with " << status;
  }
  EXPECT_TRUE(CollectionAccess::open(path, {}, killed_environment()).verify().sound());
}

TEST(CollectionProcesses, KilledWritersLoseNothing) { kill_writers(15); }

class SlowCollectionKills : public ::testing::TestWithParam<int> {};

TEST_P(SlowCollectionKills, LoseNothing) { kill_writers(125, 1 + static_cast<uint64_t>(GetParam())); }
INSTANTIATE_TEST_SUITE_P(, SlowCollectionKills, ::testing::Range(0, 8));

TEST(CollectionProcesses, AForkedChildReadsAndDoesNotWrite) {
  const TemporaryDirectory directory;
  Collection c = Collection::create(directory.path("c"), model_params());
  operate(c, 1);
  const pid_t child = forked([&] {
    if (batches_in(c.view()) != batches_after(2)) return 1;
    try {
      operate(c, 2);
      return 2;
    } catch (const InvalidState&) {
    }
    return 0;
  });
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  operate(c, 2);
  EXPECT_EQ(batches_in(c.view()), batches_after(3));
}

// The write lock goes with the process that took it, though a child of it lives on.
TEST(CollectionProcesses, AForkedChildDoesNotKeepTheWriteLock) {
  const TemporaryDirectory directory;
  const std::string path = directory.path("c");
  CollectionAccess::create(path, model_params(), {}, killed_environment()).close();
  int ready[2];
  int end[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(end), 0);
  const pid_t writer = forked([&] {
    Collection c = CollectionAccess::open(path, {}, killed_environment());
    operate(c, 1);
    const pid_t child = forked([&] {
      char word = batches_in(c.view()) == batches_after(2) ? 'y' : 'n';
      (void)!::write(ready[1], &word, 1);
      ::close(end[1]);
      (void)!::read(end[0], &word, 1);  // until the test ends
      return 0;
    });
    if (child < 0) return 1;
    ::pause();
    return 0;
  });
  char word = 0;
  ASSERT_EQ(::read(ready[0], &word, 1), 1);
  EXPECT_EQ(word, 'y');
  EXPECT_THROW((void)CollectionAccess::open(path, {}, killed_environment()), InvalidState);
  ::kill(writer, SIGKILL);
  int status = 0;
  ::waitpid(writer, &status, 0);
  Collection c = CollectionAccess::open(path, {}, killed_environment());
  operate(c, 2);
  EXPECT_EQ(batches_in(c.view()), batches_after(3));
  for (const int file : {ready[0], ready[1], end[0], end[1]}) ::close(file);
}

// Nor may it read a version that it has from its parent once the items of it are forgotten.
TEST(CollectionProcesses, AForkedChildIsToldWhatIsForgotten) {
  const TemporaryDirectory directory;
  const std::string path = directory.path("c");
  Collection c = CollectionAccess::create(path, model_params(), {}, killed_environment());
  for (int64_t i = 1; i < 12; ++i) operate(c, i);
  int go[2];
  ASSERT_EQ(::pipe(go), 0);
  const CollectionView old = c.view();
  const auto before = batches_in(old);
  const pid_t child = forked([&] {
    char word = 0;
    if (::read(go[0], &word, 1) != 1) return 1;
    try {
      return batches_in(old) == before ? 0 : 2;
    } catch (const InvalidState& error) {
      return std::string(error.what()).find("forked child") != std::string::npos ? 0 : 3;
    }
  });
  ItemFilter all;
  all.where = "true";
  c.remove(all);
  c.compact();
  EXPECT_EQ(batches_in(old), before);  // the writer's own process keeps it
  ASSERT_EQ(::write(go[1], "g", 1), 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  for (const int file : go) ::close(file);
}

// In a process that may not write there: root may everywhere, and gives that up.
template <typename Work>
int in_read_only(const std::string& path, const Work& work) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    std::filesystem::permissions(entry.path(), std::filesystem::perms(entry.is_directory() ? 0555 : 0444));
  }
  std::filesystem::permissions(path, std::filesystem::perms(0555));
  std::filesystem::permissions(std::filesystem::path(path).parent_path(), std::filesystem::perms(0755));
  const pid_t child = forked([&] {
    constexpr uid_t kNobody = 65534;
    if (::geteuid() == 0 && ::setuid(kNobody) != 0) return 10;
    try {
      return work();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      return 11;
    }
  });
  int status = 0;
  ::waitpid(child, &status, 0);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    std::filesystem::permissions(entry.path(), std::filesystem::perms(entry.is_directory() ? 0755 : 0644));
  }
  std::filesystem::permissions(path, std::filesystem::perms(0755));
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(CollectionProcesses, AClosedCollectionOpensInAReadOnlyFolder) {
  const TemporaryDirectory directory;
  const std::string path = directory.path("c");
  OpenParams reading;
  reading.mode = OpenMode::read;
  {
    Collection c = CollectionAccess::create(path, model_params(), {}, killed_environment());
    for (int64_t i = 1; i < 12; ++i) operate(c, i);
  }
  EXPECT_EQ(0, in_read_only(path, [&] {
    const Collection c = CollectionAccess::open(path, reading, killed_environment());
    if (batches_in(c.view()) != batches_after(12)) return 1;
    try {
      (void)CollectionAccess::open(path, {}, killed_environment());
      return 2;
    } catch (const IoError&) {
      return 0;
    }
  }));
  // A writer that did not close leaves a log.
  const pid_t child = forked([&] {
    Collection c = CollectionAccess::open(path, {}, killed_environment());
    operate(c, 12);
    ::kill(::getpid(), SIGKILL);
    return 0;
  });
  int status = 0;
  ::waitpid(child, &status, 0);
  std::filesystem::remove(path + "/collection.sqlite-shm");
  EXPECT_EQ(0, in_read_only(path, [&] {
    try {
      (void)CollectionAccess::open(path, reading, killed_environment());
      return 1;
    } catch (const IoError& error) {
      return std::string(error.what()).find("holds a log that is not finished") != std::string::npos ? 0 : 2;
    }
  }));
  EXPECT_EQ(batches_in(CollectionAccess::open(path, {}, killed_environment()).view()), batches_after(13));
}

// Each thread has ids of its own, and knows what it left there.
void use_from_threads(int64_t operations) {
  constexpr int kThreads = 8;
  const TemporaryDirectory directory;
  OpenParams params;
  params.sync = SyncMode::later;
  Collection c = CollectionAccess::create(directory.path("c"), model_params(), params, killed_environment());
  std::vector<CollectionModel> models(kThreads);
  std::vector<std::thread> threads;
  ResourceOptions options;
  options.threads = 1;
  const Resources resources(options);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      CollectionModel& model = models[static_cast<size_t>(t)];
      Draw draw(static_cast<uint64_t>(t) + 100);
      for (int64_t i = 0; i < operations / kThreads; ++i) {
        const int64_t id = t * 1000 + draw.below(20);
        const int64_t kind = draw.below(10);
        if (kind < 5) {
          ModelItem item = random_item(draw);
          ModelBatch batch = model_batch({{id, item}});
          c.upsert(with_vectors(batch), resources);
          model.put(id, std::move(item));
        } else if (kind < 7) {
          EXPECT_EQ(c.remove(ItemIds({id}), resources), model.items.erase(id));
        } else if (kind == 7) {
          const std::vector<float> query{1, 2, 3, 4};
          CollectionSearchParams search;
          search.filter.where = "genre = 'jazz'";
          (void)c.search(MatrixView(query.data(), 1, kModelDimension), search, resources);
        } else if (model.items.contains(id)) {
          EXPECT_EQ(c.get(ItemIds({id}), resources).payloads[0], model.items.at(id).payload);
        } else {
          EXPECT_FALSE(c.contains(ItemIds({id})));
        }
        if (i % 200 == 100 && t == 0) c.compact(resources);
        if (i % 100 == 50 && t == 1) c.fold(resources);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CollectionModel all;
  for (const CollectionModel& model : models) {
    for (const auto& [id, item] : model.items) all.put(id, item);
  }
  EXPECT_TRUE(model_of(c.view()).same_items(all));
  EXPECT_TRUE(c.verify(resources).sound());
}

TEST(CollectionProcesses, ManyThreadsUseOneHandle) { use_from_threads(reference::fewer_if_sanitized(1000, 200)); }
TEST(SlowCollectionProcesses, ManyThreadsUseOneHandle) { use_from_threads(10'000); }

}  // namespace
}  // namespace kith
