// One property of every public call: under a memory limit that is too small the error names a limit; with that limit the
// call works at once, and with one byte less the same limit is named again.
#include "core/named_limit.hpp"
#include "limits/public_calls.hpp"

#include <gtest/gtest.h>

namespace kith {
namespace {

using testing::PublicCall;

// With one thread: how much memory a call takes grows with them.
Resources under(int64_t host_limit) {
  ResourceOptions options;
  options.device = Device::cpu();
  options.threads = 1;
  options.host_memory_limit = host_limit;
  return Resources(options);
}

// The limit that is named under another one; 0 where the call works.
int64_t limit_named_under(int64_t limit, const PublicCall& call) {
  try {
    call.make(under(limit));
    return 0;
  } catch (const NamedLimit& error) {
    EXPECT_EQ(error.which(), "host");
    return error.bytes_needed();
  } catch (const OutOfMemory& error) {
    ADD_FAILURE() << call.name << " names no limit under one of " << limit << ": " << error.what();
    return -1;
  }
}

class EveryCall : public ::testing::TestWithParam<PublicCall> {};

TEST_P(EveryCall, NamesALimitThatWorksAndTheSameOneForAByteLess) {
  const int64_t named = limit_named_under(1, GetParam());
  ASSERT_GT(named, 1);
  EXPECT_EQ(limit_named_under(named / 2, GetParam()), named);
  EXPECT_EQ(limit_named_under(named - 1, GetParam()), named);
  EXPECT_EQ(limit_named_under(named, GetParam()), 0) << "the named limit of " << named << " bytes did not do";
}

INSTANTIATE_TEST_SUITE_P(Limits, EveryCall, ::testing::ValuesIn(testing::public_calls()),
                         [](const auto& call) { return call.param.name; });

}  // namespace

std::vector<PublicCall> testing::public_calls() {
  std::vector<PublicCall> calls;
  add_exact_calls(calls);
  add_training_calls(calls);
  add_index_calls(calls);
  add_graph_calls(calls);
  return calls;
}

}  // namespace kith
