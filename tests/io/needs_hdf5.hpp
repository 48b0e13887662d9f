// For tests of HDF5 files in builds that lack it.
#pragma once

#include <kith/error.hpp>
#include <kith/vector_file.hpp>

#include "io/temporary_directory.hpp"

#include <gtest/gtest.h>

namespace kith::testing {

inline bool built_with_hdf5() {
  const TemporaryDirectory directory;
  try {
    VectorFileWriter writer(directory.path("v.hdf5"), DType::f32, 0, 1);
  } catch (const Unsupported&) {
    return false;
  }
  return true;
}

}  // namespace kith::testing

#define KITH_NEEDS_HDF5() \
  if (!kith::testing::built_with_hdf5()) GTEST_SKIP() << "this build has no HDF5"
