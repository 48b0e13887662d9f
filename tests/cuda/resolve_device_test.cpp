// Which device does a job: decided, or refused, where there is no GPU too.
#include "cuda/resolve_device.hpp"

#include <kith/error.hpp>

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace kith {
namespace {

DeviceRequest little_work(std::vector<MemorySpace> spaces) {
  DeviceRequest request;
  request.job = "a test";
  request.spaces = std::move(spaces);
  request.work = {1e6, 1e6, 1e13};
  request.fits = [](Device) { return true; };
  request.description = [] { return std::string("a little work"); };
  return request;
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
  EXPECT_EQ(resolve_device(little_work({MemorySpace::host()}), Resources(options)), Device::cpu());
  EXPECT_EQ(logged, "a little work on cpu");
}

TEST(ResolveDevice, DataOnAGpuIsNotReadByAnother) {
  const DeviceRequest request = little_work({MemorySpace::host(), MemorySpace::cuda(1)});
  EXPECT_THROW(resolve_device(request, Resources(options_of(Device::cpu()))), Unsupported);
  EXPECT_THROW(resolve_device(request, Resources(options_of(Device::cuda(0)))), InvalidArgument);
  const DeviceRequest apart = little_work({MemorySpace::cuda(0), MemorySpace::cuda(1)});
  try {
    resolve_device(apart, Resources());
    FAIL() << "data on two GPUs were taken";
  } catch (const InvalidArgument& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("cuda:1 was given to a test on cuda:0"), std::string::npos) << text;
  }
}

TEST(ResolveDevice, AGpuIsChosenWhereItsStartAndCopiesPay) {
  DeviceInfo gpu;
  gpu.device = Device::cuda(0);
  const Work much{1e13, 1e9, 1e13};
  EXPECT_TRUE(worth_a_gpu(much, 16));
  EXPECT_EQ(choose_device(much, 16, {gpu}), Device::cuda(0));
  EXPECT_EQ(choose_device(much, 16, {}), Device::cpu());
  EXPECT_EQ(choose_device({1e13, 1e13, 1e13}, 16, {gpu}), Device::cpu());  // it would still be copying
  EXPECT_FALSE(worth_a_gpu({1e9, 1e9, 1e13}, 16));
}

}  // namespace
}  // namespace kith
