// Runs the checks that are written in C.
#include "capi/c_api_checks.h"

#include "io/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <string>

namespace {

class CApi : public ::testing::TestWithParam<size_t> {};

TEST_P(CApi, Check) {
  const kith::testing::TemporaryDirectory folder;
  const char* wrong = c_api_checks[GetParam()].run(folder.path().c_str());
  EXPECT_EQ(wrong, nullptr) << wrong;
}

INSTANTIATE_TEST_SUITE_P(FromC, CApi, ::testing::Range<size_t>(0, c_api_check_count),
                         [](const auto& check) { return std::string(c_api_checks[check.param].name); });

}  // namespace
