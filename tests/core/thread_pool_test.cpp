#include "core/thread_pool.hpp"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace kith {
namespace {

TEST(ThreadPool, RunsEveryTaskOnce) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    for (const int64_t tasks : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> runs(static_cast<size_t>(tasks));
      pool.run(tasks, [&](int64_t task, int) { ++runs[static_cast<size_t>(task)]; }, {});
      for (const auto& count : runs) EXPECT_EQ(count, 1);
    }
  }
}

TEST(ThreadPool, SlotsAreBelowTheThreadsAndNeverShared) {
  ThreadPool pool(4);
  std::vector<std::atomic<int>> inside(4);
  pool.run(2000,
           [&](int64_t, int slot) {
             ASSERT_LT(slot, 4);
             EXPECT_EQ(++inside[static_cast<size_t>(slot)], 1);
             --inside[static_cast<size_t>(slot)];
           },
           {});
}

TEST(ThreadPool, AnExceptionReachesTheCallerAndEndsTheJob) {
  ThreadPool pool(3);
  std::atomic<int> runs{0};
  EXPECT_THROW(pool.run(1000000,
                        [&](int64_t task, int) {
                          ++runs;
                          if (task == 10) throw std::runtime_error("ten");
                        },
                        {}),
               std::runtime_error);
  EXPECT_LT(runs, 1000000);
  std::atomic<int> after{0};
  pool.run(10, [&](int64_t, int) { ++after; }, {});
  EXPECT_EQ(after, 10);
}

TEST(ThreadPool, MayBeUsedInsideATask) {
  ThreadPool pool(3);
  std::atomic<int> runs{0};
  pool.run(6, [&](int64_t, int) { pool.run(5, [&](int64_t, int) { ++runs; }, {}); }, {});
  EXPECT_EQ(runs, 30);
}

TEST(ThreadPool, ServesManyCallersAtOnce) {
  ThreadPool pool(3);
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int i = 0; i < 50; ++i) pool.run(20, [&](int64_t task, int) { sum += task; }, {});
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 4 * 50 * 190);
}

// Thread sanitizers cannot follow a fork of a process with threads.
#if !defined(__SANITIZE_THREAD__)
TEST(ThreadPool, WorksInAForkedChild) {
  ThreadPool pool(3);
  std::atomic<int> runs{0};
  pool.run(100, [&](int64_t, int) { ++runs; }, {});
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    runs = 0;
    pool.run(100, [&](int64_t, int) { ++runs; }, {});
    _exit(runs == 100 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
#endif

}  // namespace
}  // namespace kith
