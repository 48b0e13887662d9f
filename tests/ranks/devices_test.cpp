#include <kith/device.hpp>
#include <kith/error.hpp>
#include <kith/resources.hpp>

#include "core/memory_budget.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace kith {
namespace {

using ::testing::HasSubstr;

std::string refusal(const std::string& names) {
  try {
    (void)parse_devices(names);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "none";
}

TEST(Devices, NamesOfOneAndOfSeveral) {
  for (const std::string name :
       {"auto", "cpu", "cuda:0", "cuda:3", "cpu/4", "cuda:0/3", "cuda:0,cuda:1", "cpu,cuda:2/2"}) {
    EXPECT_EQ(name_of(parse_devices(name)), name);
  }
  EXPECT_EQ(name_of(parse_devices("cuda")), "cuda:0");
  EXPECT_EQ(name_of(parse_devices("cpu/1")), "cpu");
  EXPECT_EQ(parse_devices("cpu/4"), (std::vector<DeviceParts>{{Device::cpu(), 4}}));
}

TEST(Devices, WrongNamesAreTold) {
  EXPECT_THAT(refusal("gpu"), HasSubstr("unknown device 'gpu'; known are: auto, cpu"));
  EXPECT_THAT(refusal(""), HasSubstr("unknown device ''"));
  EXPECT_THAT(refusal("cpu,"), HasSubstr("unknown device ''"));
  EXPECT_THAT(refusal("cpu/"), HasSubstr("'' is no number of parts"));
  EXPECT_THAT(refusal("cpu/0"), HasSubstr("'0' is no number of parts; give 1 to 64, as in cpu/2"));
  EXPECT_THAT(refusal("cpu/-3"), HasSubstr("no number of parts"));
  EXPECT_THAT(refusal("cpu/2x"), HasSubstr("'2x' is no number of parts"));
  EXPECT_THAT(refusal("cpu/65"), HasSubstr("no number of parts"));
  EXPECT_THAT(refusal("auto/2"), HasSubstr("auto has no parts"));
  EXPECT_THAT(refusal("auto,cpu"), HasSubstr("auto stands alone"));
  EXPECT_THAT(refusal("cuda:0,cuda:0"), HasSubstr("device cuda:0 is named twice in 'cuda:0,cuda:0'; for 2 parts of it "
                                                  "write cuda:0/2"));
  EXPECT_THAT(refusal("cpu/2,cpu"), HasSubstr("write cpu/3"));
  if (cuda_devices().empty()) {
    EXPECT_THAT(refusal("cuda:all"), HasSubstr("no CUDA device"));
  }
}

TEST(Devices, ResourcesHaveThem) {
  EXPECT_EQ(Resources().devices(), (std::vector<DeviceParts>{{Device::automatic()}}));
  EXPECT_EQ(Resources().parts(), 1);
  ResourceOptions options;
  options.devices = parse_devices("cpu/3");
  options.threads = 7;
  const Resources several(options);
  EXPECT_EQ(several.device(), Device::cpu());
  EXPECT_EQ(name_of(several.devices()), "cpu/3");
  EXPECT_EQ(several.parts(), 3);
  EXPECT_EQ(several.threads(), 7);
  EXPECT_EQ(several.part(0).threads() + several.part(1).threads() + several.part(2).threads(), 7);
  EXPECT_EQ(several.part(1).parts(), 1);
  EXPECT_EQ(name_of(several.part(1).devices()), "cpu");
  EXPECT_EQ(several.with_device(Device::cpu()).parts(), 1);
  EXPECT_EQ(several.with_devices(parse_devices("cpu")).parts(), 1);
  EXPECT_EQ(Resources().with_devices(parse_devices("cpu/64")).part(63).threads(), 1);
  EXPECT_EQ(several.with_log({}).parts(), 3);
}

TEST(Devices, LimitsAreDivided) {
  ResourceOptions options;
  options.devices = parse_devices("cuda:0/4,cuda:1,cpu");
  options.host_memory_limit = 6000;
  options.device_memory_limit = 4000;
  const Resources several(options);
  EXPECT_EQ(several.parts(), 6);
  EXPECT_EQ(several.part(0).host_memory()->available(), 1000);
  EXPECT_EQ(several.part(3).device_memory()->available(), 1000);
  EXPECT_EQ(several.part(4).device_memory()->available(), 4000);
  const Resources part = several.part(1);
  part.device_memory()->reserve(1000, "a test");
  EXPECT_EQ(several.device_memory(0)->used(), 1000);
  EXPECT_THROW(part.device_memory()->reserve(1, "a test"), OutOfMemory);
  EXPECT_EQ(several.device_memory(0)->used(), 1000);
  EXPECT_EQ(several.device_memory(1)->used(), 0);
  part.device_memory()->release(1000);
  EXPECT_EQ(several.device_memory(0)->used(), 0);

  options.device_memory_limits = {8000, 500, 1};
  const Resources own(options);
  EXPECT_EQ(own.part(2).device_memory()->available(), 2000);
  EXPECT_EQ(own.part(4).device_memory()->available(), 500);
  options.device_memory_limits = {8000, 500};
  EXPECT_THROW(Resources{options}, InvalidArgument);
  options.device_memory_limits = {8000, 500, 0};
  EXPECT_THROW(Resources{options}, InvalidArgument);
  options.device_memory_limits = {};
  options.devices = {{Device::cpu(), 0}};
  EXPECT_THROW(Resources{options}, InvalidArgument);
  options.devices = {{Device::cuda(1)}, {Device::cuda(1)}};
  EXPECT_THROW(Resources{options}, InvalidArgument);
}

}  // namespace
}  // namespace kith
