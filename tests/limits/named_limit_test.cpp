// One property of every public call: under a memory limit that is too small the error names a limit; with that limit
// the call works at once, and with one byte less the same limit is named again.
#include "core/named_limit.hpp"
#include "limits/public_calls.hpp"

#include <gtest/gtest.h>

#include <string_view>

namespace kith {
namespace {

using testing::PublicCall;

// A device and one of its limits.
struct Limited {
  Device device;
  int64_t ResourceOptions::*limit;
  std::string_view which;
};

constexpr Limited kHostOfCpu{Device::cpu(), &ResourceOptions::host_memory_limit, "host"};
constexpr Limited kHostOfGpu{Device::cuda(0), &ResourceOptions::host_memory_limit, "host"};
constexpr Limited kGpu{Device::cuda(0), &ResourceOptions::device_memory_limit, "device"};

// The limit that is named under another one; 0 where the call works.
int64_t limit_named_under(int64_t limit, const Limited& limited, const PublicCall& call) {
  ResourceOptions options;
  options.device = limited.device;
  options.threads = 1;  // how much memory a call takes grows with them
  options.*limited.limit = limit;
  try {
    call.make(Resources(options));
    return 0;
  } catch (const NamedLimit& error) {
    EXPECT_EQ(error.which(), limited.which);
    return error.bytes_needed();
  } catch (const OutOfMemory& error) {
    ADD_FAILURE() << call.name << " names no limit under one of " << limit << ": " << error.what();
    return -1;
  }
}

void expect_named_limit(const Limited& limited, const PublicCall& call) {
  const int64_t named = limit_named_under(1, limited, call);
  const bool may_take_none = limited.device.kind == DeviceKind::cuda || !call.takes_memory;
  if (named == 0 && may_take_none) GTEST_SKIP() << "it takes none of that memory";
  ASSERT_GT(named, 1);
  EXPECT_EQ(limit_named_under(named / 2, limited, call), named);
  EXPECT_EQ(limit_named_under(named - 1, limited, call), named);
  EXPECT_EQ(limit_named_under(named, limited, call), 0) << "the named limit of " << named << " bytes did not do";
  EXPECT_EQ(limit_named_under(named + named / 8, limited, call), 0) << "with more than the named limit of " << named;
}

class EveryCall : public ::testing::TestWithParam<PublicCall> {};
TEST_P(EveryCall, NamesALimitThatWorksAndTheSameOneForAByteLess) { expect_named_limit(kHostOfCpu, GetParam()); }

class EveryCallOnAGpu : public ::testing::TestWithParam<PublicCall> {
 protected:
  void SetUp() override {
    if (cuda_devices().empty()) GTEST_SKIP() << "no CUDA device here, or a build without CUDA";
  }
};
TEST_P(EveryCallOnAGpu, NamesAHostLimitThatWorks) { expect_named_limit(kHostOfGpu, GetParam()); }
TEST_P(EveryCallOnAGpu, NamesADeviceLimitThatWorks) { expect_named_limit(kGpu, GetParam()); }

std::vector<PublicCall> calls_on_a_gpu() {
  std::vector<PublicCall> calls = testing::public_calls();
  std::erase_if(calls, [](const PublicCall& call) { return !call.on_gpus; });
  testing::add_calls_of_gpu_rows(calls);
  return calls;
}

INSTANTIATE_TEST_SUITE_P(Limits, EveryCall, ::testing::ValuesIn(testing::public_calls()),
                         [](const auto& call) { return call.param.name; });
INSTANTIATE_TEST_SUITE_P(Limits, EveryCallOnAGpu, ::testing::ValuesIn(calls_on_a_gpu()),
                         [](const auto& call) { return call.param.name; });

}  // namespace

std::vector<PublicCall> testing::public_calls() {
  static const std::vector<PublicCall> all = [] {
    std::vector<PublicCall> calls;
    add_exact_calls(calls);
    add_training_calls(calls);
    add_index_calls(calls);
    add_graph_calls(calls);
    return calls;
  }();
  return all;
}

}  // namespace kith
