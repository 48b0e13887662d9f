#include <kith/error.hpp>
#include <kith/resources.hpp>

#include "core/memory_budget.hpp"
#include "core/parallel_for.hpp"
#include "core/thread_pool.hpp"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

namespace kith {
namespace {

TEST(Resources, RefusesImpossibleOptions) {
  ResourceOptions options;
  options.threads = -1;
  EXPECT_THROW(Resources{options}, InvalidArgument);
  options.threads = 1;
  options.host_memory_limit = 0;
  EXPECT_THROW(Resources{options}, InvalidArgument);
}

TEST(Resources, CopiesShareTheirPoolAndBudgets) {
  const Resources a;
  const Resources b = a.with_device(Device::cpu()).with_progress([](const Progress&) {});
  EXPECT_EQ(&a.pool(), &b.pool());
  EXPECT_EQ(a.host_memory(), b.host_memory());
  EXPECT_EQ(b.device(), Device::cpu());
  EXPECT_EQ(a.device(), Device::automatic());
}

TEST(Resources, DefaultOnesShareAPoolAndNoToken) {
  const Resources a;
  const Resources b;
  EXPECT_EQ(&a.pool(), &b.pool());
  EXPECT_EQ(a.host_memory(), b.host_memory());
  EXPECT_NE(&a.pool(), &Resources(ResourceOptions{}).pool());
  a.options().cancel.request();
  EXPECT_THROW(a.check_cancelled(), Cancelled);
  EXPECT_NO_THROW(b.check_cancelled());
  EXPECT_NO_THROW(Resources().check_cancelled());
}

#ifndef __SANITIZE_THREAD__  // which does not follow a fork of a process with threads
TEST(Resources, AForkedChildHasADefaultOfItsOwn) {
  const Resources here;
  std::atomic<int> count{0};
  here.pool().run(8, [&](int64_t, int) { ++count; }, {});  // threads that the child does not have
  const pid_t child = ::fork();
  if (child == 0) {
    const Resources there;
    std::atomic<int> done{0};
    there.pool().run(8, [&](int64_t, int) { ++done; }, {});
    ::_exit(&there.pool() != &here.pool() && done == 8 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
#endif

TEST(ParallelFor, ReportsOnTheCallingThreadAndEndsAtTheTotal) {
  ResourceOptions options;
  options.threads = 3;
  const std::thread::id caller = std::this_thread::get_id();
  int64_t last = -1;
  bool ordered = true;
  options.progress = [&](const Progress& progress) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_EQ(progress.stage, "work");
    EXPECT_EQ(progress.total, 40);
    ordered &= progress.done >= last;
    last = progress.done;
  };
  const Resources resources(options);
  ProgressMeter meter("work", 40, resources);
  parallel_for(40, meter, resources, [&](int64_t, int) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    meter.add(1);
  });
  meter.finish();
  EXPECT_TRUE(ordered);
  EXPECT_EQ(last, 40);
}

TEST(ParallelFor, StopsWhenCancelled) {
  ResourceOptions options;
  options.threads = 2;
  const Resources resources(options);
  std::atomic<int64_t> done{0};
  ProgressMeter meter("work", 1000000, resources);
  EXPECT_THROW(parallel_for(1000000, meter, resources,
                            [&](int64_t, int) {
                              if (++done == 5) resources.options().cancel.request();
                              std::this_thread::sleep_for(std::chrono::microseconds(50));
                            }),
               Cancelled);
  EXPECT_LT(done, 100000);
}

TEST(ParallelFor, StopsWhenInterrupted) {
  ResourceOptions options;
  options.threads = 2;
  std::atomic<bool> pressed{false};
  options.interrupted = [&] { return pressed.load(); };
  const Resources resources(options);
  ProgressMeter meter("work", 1, resources);
  EXPECT_THROW(parallel_for(1000000, meter, resources,
                            [&](int64_t task, int) {
                              if (task == 3) pressed = true;
                              std::this_thread::sleep_for(std::chrono::microseconds(100));
                            }),
               Cancelled);
}

TEST(ParallelFor, LongTasksStopAtTheirCheckpoints) {
  ResourceOptions options;
  options.threads = 2;
  const Resources resources(options);
  ProgressMeter meter("work", 1, resources);
  std::thread presser([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    resources.options().cancel.request();
  });
  EXPECT_THROW(parallel_for(2, meter, resources,
                            [&](int64_t, int) {
                              for (;;) {
                                meter.checkpoint();
                                std::this_thread::sleep_for(std::chrono::milliseconds(1));
                              }
                            }),
               Cancelled);
  presser.join();
}

TEST(Resources, EachGpuHasABudgetOfItsOwn) {
  ResourceOptions options;
  options.device_memory_limit = 1000;
  const Resources resources(options);
  resources.device_memory(1)->reserve(900, "a test");
  EXPECT_EQ(resources.device_memory(0)->available(), 1000);
  EXPECT_EQ(resources.device_memory()->available(), 1000);
  const Resources second = resources.with_device(Device::cuda(1));
  EXPECT_EQ(second.device_memory(), resources.device_memory(1));
  EXPECT_EQ(second.device_memory()->available(), 100);
  const auto planned = std::make_shared<MemoryBudget>("device", 50);
  EXPECT_EQ(second.with_budgets(resources.host_memory(), planned).device_memory(3), planned);
  resources.device_memory(1)->release(900);
}

}  // namespace
}  // namespace kith
