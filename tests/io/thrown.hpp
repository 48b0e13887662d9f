// The exception that an expression throws, to look into; another type, or none, fails the test.
#pragma once

#include <kith/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>

namespace kith::testing {

template <typename Expected, typename Function>
std::optional<Expected> thrown(const Function& function) {
  try {
    function();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Expected& error) {
    return error;
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another type was thrown: " << error.what();
  }
  return std::nullopt;
}

template <typename Expected, typename Function>
void expect_refusal(const Function& function, const std::string& reason) {
  const auto error = thrown<Expected>(function);
  if (error) {
    EXPECT_THAT(error->what(), ::testing::HasSubstr(reason));
  }
}

// CorruptFile must know the file and the place, and say both.
template <typename Function>
void expect_corrupt(const Function& function, const std::string& path, int64_t offset, const std::string& reason) {
  const auto error = thrown<CorruptFile>(function);
  if (!error) return;
  EXPECT_EQ(error->path(), path);
  EXPECT_EQ(error->offset(), offset) << error->what();
  EXPECT_THAT(error->what(), ::testing::HasSubstr("'" + path + "', byte " + std::to_string(offset) + ":"));
  EXPECT_THAT(error->what(), ::testing::HasSubstr(reason));
}

template <typename Function>
void expect_io_error(const Function& function, const std::string& path, int code, const std::string& reason) {
  const auto error = thrown<IoError>(function);
  if (!error) return;
  EXPECT_EQ(error->path(), path);
  EXPECT_EQ(error->code(), code) << error->what();
  EXPECT_THAT(error->what(), ::testing::HasSubstr("'" + path + "'"));
  EXPECT_THAT(error->what(), ::testing::HasSubstr(reason));
}

}  // namespace kith::testing
