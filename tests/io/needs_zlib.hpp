// For tests of compressed files in builds without zlib.
#pragma once

#include <kith/error.hpp>

#include "io/gzip_stream.hpp"

#include <gtest/gtest.h>

namespace kith::testing {

inline bool built_with_zlib() {
  try {
    inflate_block({}, {});
  } catch (const Unsupported&) {
    return false;
  }
  return true;
}

}  // namespace kith::testing

#define KITH_NEEDS_ZLIB() \
  if (!kith::testing::built_with_zlib()) GTEST_SKIP() << "this build has no zlib"
