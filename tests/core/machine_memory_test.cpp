#include "core/machine_memory.hpp"

#include <kith/error.hpp>
#include <kith/host_buffer.hpp>
#include <kith/resources.hpp>

#include "core/memory_budget.hpp"
#include "core/reservation.hpp"
#include "io/temporary_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>

#include <filesystem>
#include <string>

namespace kith {
namespace {

// A machine as the system's files describe it.
class FakeMachine {
 public:
  explicit FakeMachine(const std::string& group) {
    write("/proc/meminfo", "MemTotal: 9000 kB\nMemFree: 10 kB\nMemAvailable:   4000 kB\nSwapFree: 96 kB\n");
    write("/proc/self/cgroup", group);
  }
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(folder_.path() + path).parent_path());
    folder_.write(path.substr(1), text);
  }
  int64_t free() const { return free_host_memory(folder_.path()); }

 private:
  testing::TemporaryDirectory folder_;
};

TEST(SystemText, IsTheWholeFileAndEmptyWhereThereIsNone) {
  const testing::TemporaryDirectory folder;
  const std::string text = std::string(5000, 'a') + "\nb\n";
  folder.write("file", text);
  EXPECT_EQ(system_text(folder.path() + "/file"), text);
  EXPECT_EQ(system_text(folder.path() + "/none"), "");
  EXPECT_EQ(system_text(folder.path()), "");
}

TEST(MachineMemory, IsWhatIsAvailableAndSwap) {
  const FakeMachine machine("0::/\n");
  EXPECT_EQ(machine.free(), 4096 << 10);
  const testing::TemporaryDirectory nothing;
  EXPECT_EQ(free_host_memory(nothing.path()), INT64_MAX);
}

TEST(MachineMemory, IsWithinTheControlGroupAndThoseAboveIt) {
  const FakeMachine machine("0::/one/two\n");
  machine.write("/sys/fs/cgroup/one/two/memory.max", "max\n");
  machine.write("/sys/fs/cgroup/one/two/memory.current", "50000\n");
  EXPECT_EQ(machine.free(), 4096 << 10);
  machine.write("/sys/fs/cgroup/one/memory.max", "300000\n");
  machine.write("/sys/fs/cgroup/one/memory.current", "100000\n");
  EXPECT_EQ(machine.free(), 200000);
  machine.write("/sys/fs/cgroup/one/memory.stat", "anon 7\ninactive_file 30000\nactive_file 4000\n");
  EXPECT_EQ(machine.free(), 234000);
  machine.write("/sys/fs/cgroup/one/two/memory.max", "40000\n");  // lowered below what is used
  EXPECT_EQ(machine.free(), 0);
  machine.write("/sys/fs/cgroup/one/two/memory.stat", "active_file 15000\n");
  EXPECT_EQ(machine.free(), 5000);
}

TEST(MachineMemory, KnowsGroupsOfTheFirstVersion) {
  const FakeMachine machine("4:memory:/jobs/mine\n1:cpu:/\n0::/\n");
  machine.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  machine.write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1000\n");
  EXPECT_EQ(machine.free(), 4096 << 10);
  machine.write("/sys/fs/cgroup/memory/jobs/mine/memory.limit_in_bytes", "70000\n");
  machine.write("/sys/fs/cgroup/memory/jobs/mine/memory.usage_in_bytes", "60000\n");
  machine.write("/sys/fs/cgroup/memory/jobs/mine/memory.stat", "inactive_file 1\ntotal_inactive_file 5000\n");
  EXPECT_EQ(machine.free(), 15000);
}

TEST(MachineMemory, CountsTheSwapThatAGroupMayUse) {
  const FakeMachine second("0::/one\n");  // 96 KiB of swap are free on it
  second.write("/sys/fs/cgroup/one/memory.max", "300000\n");
  second.write("/sys/fs/cgroup/one/memory.current", "100000\n");
  EXPECT_EQ(second.free(), 200000);
  second.write("/sys/fs/cgroup/one/memory.swap.max", "50000\n");
  second.write("/sys/fs/cgroup/one/memory.swap.current", "20000\n");
  EXPECT_EQ(second.free(), 230000);
  second.write("/sys/fs/cgroup/one/memory.swap.max", "0\n");
  EXPECT_EQ(second.free(), 200000);
  second.write("/sys/fs/cgroup/one/memory.swap.max", "max\n");
  EXPECT_EQ(second.free(), 200000 + (96 << 10));

  const FakeMachine first("4:memory:/mine\n");  // memory and swap together
  first.write("/sys/fs/cgroup/memory/mine/memory.limit_in_bytes", "70000\n");
  first.write("/sys/fs/cgroup/memory/mine/memory.usage_in_bytes", "60000\n");
  first.write("/sys/fs/cgroup/memory/mine/memory.memsw.usage_in_bytes", "65000\n");
  first.write("/sys/fs/cgroup/memory/mine/memory.memsw.limit_in_bytes", "70000\n");
  EXPECT_EQ(first.free(), 10000);
  first.write("/sys/fs/cgroup/memory/mine/memory.memsw.limit_in_bytes", "95000\n");
  EXPECT_EQ(first.free(), 30000);
  first.write("/sys/fs/cgroup/memory/mine/memory.memsw.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(first.free(), 10000 + (96 << 10));
  first.write("/sys/fs/cgroup/memory/mine/memory.limit_in_bytes", "9223372036854771712\n");
  first.write("/sys/fs/cgroup/memory/mine/memory.usage_in_bytes", "0\n");
  EXPECT_EQ(first.free(), 4096 << 10);  // no limit: what the machine has
}

TEST(MachineMemory, SaysWhyMemoryWasRefused) {
  EXPECT_EQ(refused_memory(2048, 1024), "1 KiB free on this machine");
  EXPECT_EQ(refused_memory(2048, -5), "0 B free on this machine");
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  if (before.rlim_cur != RLIM_INFINITY) GTEST_SKIP() << "this process is limited already";
  EXPECT_EQ(refused_memory(2048, 4096), "which the system refused to this process");
  rlimit limited = before;
  limited.rlim_cur = rlim_t{1} << 46;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limited), 0);
  EXPECT_EQ(refused_memory(2048, 4096), "and the process is limited to 64 TiB of address space (ulimit -v)");
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
}

TEST(MachineMemory, RefusesWhatTheMachineCannotGive) {
  const Resources resources{ResourceOptions()};
  constexpr int64_t kHuge = int64_t{1} << 46;
  try {
    const HostBuffer buffer(kHuge, "the result", resources);
    FAIL() << "64 TiB were there";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.bytes_needed(), kHuge);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("the result: 64 TiB needed"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("free on this machine"));
  }
  EXPECT_THROW(Reservation(kHuge, 0, resources), OutOfMemory);
  EXPECT_EQ(resources.host_memory()->used(), 0);
}

// What is held may not have been touched: together they must fit.
TEST(MachineMemory, CountsWhatIsHeldAlready) {
  const int64_t free = free_host_memory();
  if (free == INT64_MAX) GTEST_SKIP() << "the system does not say";
  const int64_t part = free / 4 * 3;
  if (part < kAskMachineFrom) GTEST_SKIP() << "too little memory is free";
  EXPECT_NO_THROW(check_machine_has(part, part, "a part"));
  EXPECT_THROW(check_machine_has(part, 4 * part, "another"), OutOfMemory);
}

}  // namespace
}  // namespace kith
