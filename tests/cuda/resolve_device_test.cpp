// Which device does a job: decided, or refused, where there is no GPU too.
#include "cuda/resolve_device.hpp"

#include <kith/error.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace kith {
namespace {

Device device_for_little(const ReusedVector<MemorySpace>& spaces, const Resources& resources) {
  return choose_device({"a test", [] { return std::string("a little work"); }}, spaces,
                       {{CostUnit::f32_training, 1e6}, {CostUnit::copied_byte, 1e6}}, {}, resources);
}

ResourceOptions options_of(Device device) {
  ResourceOptions options;
  options.device = device;
  return options;
}

TEST(ResolveDevice, LittleWorkStaysOnTheCpuAndIsLogged) {
  ResourceOptions options = options_of(Device::automatic());
  std::string logged;
  options.log = [&](LogLevel, std::string_view text) { logged = text; };
  EXPECT_EQ(device_for_little({MemorySpace::host()}, Resources(options)), Device::cpu());
  EXPECT_EQ(logged, "a little work on cpu");
}

TEST(ResolveDevice, DataOnAGpuIsNotReadByAnother) {
  const ReusedVector<MemorySpace> spaces{MemorySpace::host(), MemorySpace::cuda(1)};
  EXPECT_THROW(device_for_little(spaces, Resources(options_of(Device::cpu()))), Unsupported);
  EXPECT_THROW(device_for_little(spaces, Resources(options_of(Device::cuda(0)))), InvalidArgument);
  try {
    device_for_little({MemorySpace::cuda(0), MemorySpace::cuda(1)}, Resources());
    FAIL() << "data on two GPUs were taken";
  } catch (const InvalidArgument& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("cuda:1 was given to a test on cuda:0"), std::string::npos) << text;
  }
}

TEST(ResolveDevice, AGpuIsChosenWhereItsStartAndCopiesPay) {
  DeviceInfo gpu;
  gpu.device = Device::cuda(0);
  const auto work = [](double operations, double bytes) {
    return Counts{{CostUnit::f32_training, operations}, {CostUnit::copied_byte, bytes}};
  };
  EXPECT_TRUE(worth_a_gpu(work(1e13, 1e9), 16));
  EXPECT_EQ(faster_device(work(1e13, 1e9), 16, {gpu}), Device::cuda(0));
  EXPECT_EQ(faster_device(work(1e13, 1e9), 16, {}), Device::cpu());
  EXPECT_EQ(faster_device(work(1e13, 1e13), 16, {gpu}), Device::cpu());  // it would still be copying
  EXPECT_FALSE(worth_a_gpu(work(1e9, 1e9), 16));
}

TEST(ResolveDevice, TheModelCountsEachUnitAndWorkThatWasNotMeasuredTakesForEver) {
  const MachineModel cpu = cpu_model(4);
  EXPECT_DOUBLE_EQ(cpu.seconds({{CostUnit::ranked_product, 1.2e11}, {CostUnit::copied_byte, 1e12}}), 1.0);
  EXPECT_DOUBLE_EQ(model_of(DeviceInfo()).seconds({{CostUnit::list_start, 1e9}, {CostUnit::list_start, 1e9}}), 52);
  EXPECT_EQ(cpu.seconds({{CostUnit::list_start, 1}}), std::numeric_limits<double>::infinity());
}

TEST(ResolveDevice, WhereTheDeviceChangesTheResultThreadsDoNotDecide) {
  ResourceOptions options = options_of(Device::automatic());
  options.threads = 1;
  const Counts some{{CostUnit::f32_training, 5e10}};  // half a second of one thread, which a GPU needs to start
  EXPECT_TRUE(worth_a_gpu(some, 1));
  EXPECT_FALSE(worth_a_gpu(some, 8));
  const DeviceJob job{"a test", [] { return std::string("some work"); }, true};
  EXPECT_EQ(choose_device(job, {MemorySpace::host()}, some, {}, Resources(options)), Device::cpu());
}

}  // namespace
}  // namespace kith
