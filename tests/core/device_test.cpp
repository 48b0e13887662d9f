#include <kith/device.hpp>
#include <kith/error.hpp>

#include "core/arm_core_name.hpp"
#include "core/cpu_target.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace kith {
namespace {

TEST(Device, NamesGoBothWays) {
  for (const char* name : {"auto", "cpu", "cuda:0", "cuda:13"}) EXPECT_EQ(name_of(parse_device(name)), name);
  EXPECT_EQ(parse_device("cuda"), Device::cuda(0));
}

TEST(Device, RefusesOtherNames) {
  for (const char* name : {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "CPU"}) {
    EXPECT_THROW(parse_device(name), InvalidArgument) << name;
  }
}

TEST(Device, TheCpuHasThreadsMemoryAndAnInstructionSet) {
  const DeviceInfo info = cpu_info();
  EXPECT_GE(info.threads, 1);
  EXPECT_GT(info.memory_total, 0);
  EXPECT_FALSE(info.instruction_set.empty());
}

TEST(Device, CoresOfArmHaveNames) {
  const auto of = [](const char* maker, const char* part) {
    return arm_core_name(std::string("processor\t: 0\nCPU implementer\t: ") + maker + "\nCPU architecture: 8\nCPU part\t: " +
                         part + "\nCPU revision\t: 1\n\nprocessor\t: 1\n");
  };
  EXPECT_EQ(of("0x41", "0xd40"), "ARM Neoverse V1");
  EXPECT_EQ(of("0xc0", "0xac3"), "Ampere-1");
  EXPECT_EQ(of("0x41", "0xfff"), "ARM core 0x41 part 0xfff");
  EXPECT_EQ(arm_core_name("processor : 0\nmodel name : A B\n"), "");
  EXPECT_EQ(arm_core_name("CPU implementer : none\nCPU part : 0xd40\n"), "");
}

TEST(CpuTarget, CanBeForcedAndGivenBack) {
  const std::string before = cpu_target_name();
  for (const std::string& name : cpu_targets()) {
    force_cpu_target(name);
    EXPECT_EQ(cpu_target_name(), name);
  }
  force_cpu_target("");
  EXPECT_EQ(cpu_target_name(), before);
  EXPECT_THROW(force_cpu_target("abacus"), InvalidArgument);
  EXPECT_EQ(cpu_target_name(), before);
}

TEST(CpuTarget, ATargetHasItsExtensionsAndNoOthers) {
  for (const std::string& name : cpu_targets()) {
    force_cpu_target(name);
    const CpuExtensions extensions = cpu_extensions();
    EXPECT_EQ(extensions.amx, name == "AMX") << name;
    EXPECT_EQ(extensions.vnni, name == "AMX" || name == "VNNI") << name;
    EXPECT_EQ(extensions.mmla, name == "MMLA") << name;
    EXPECT_EQ(extensions.dotprod, name == "MMLA" || name == "DOTPROD") << name;
    EXPECT_EQ(extensions.avx2, extensions.vnni || name.starts_with("AVX")) << name;
  }
  force_cpu_target("");
  EXPECT_EQ(cpu_targets().front(), cpu_target_name());
}

TEST(CpuTarget, EveryOneOfTheBuildIsTestedHere) {
  const std::vector<std::string> here = cpu_targets();
  std::string missing;
  for (const std::string& name : built_cpu_targets()) {
    if (std::find(here.begin(), here.end(), name) == here.end()) missing += " " + name;
  }
  for (const std::string& name : here) EXPECT_THAT(built_cpu_targets(), ::testing::Contains(name));
  if (!missing.empty()) GTEST_SKIP() << "instruction sets that this machine lacks, not tested here:" << missing;
}

TEST(CpuTarget, AProcessorWithoutAnyIsRefused) {
  EXPECT_THROW(require_cpu_target({}), Unsupported);
  EXPECT_NO_THROW(require_cpu_target(cpu_targets()));
}

}  // namespace
}  // namespace kith
