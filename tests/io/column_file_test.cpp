// A number for each row: columns, rows and arrays of one axis are the same; a matrix is refused.
#include <kith/column_file.hpp>

#include <kith/error.hpp>
#include <kith/vector_file.hpp>

#include "io/temporary_directory.hpp"
#include "io/thrown.hpp"

#include <gtest/gtest.h>

#include <cstring>

using namespace std::string_literals;

namespace kith {
namespace {

using testing::expect_refusal;
using testing::TemporaryDirectory;

TEST(ColumnFile, OneColumnOneRowOrOneAxis) {
  const TemporaryDirectory directory;
  const float values[] = {1.5F, -2, 3, 0};
  write_vectors(directory.path("column.fbin"), MatrixView(values, 4, 1));
  write_vectors(directory.path("row.hdf5"), MatrixView(values, 1, 4));
  const std::string header = "\x93NUMPY\x01\0\x36\0"s + "{'descr':'<f4','fortran_order':False,'shape':(4, ),} \n";
  ASSERT_EQ(header.size(), 64U);
  directory.write("axis.npy", header + std::string(reinterpret_cast<const char*>(values), sizeof(values)));
  for (const char* name : {"column.fbin", "row.hdf5", "axis.npy"}) {
    const MatrixBuffer column = read_column(directory.path(name));
    ASSERT_EQ(column.rows(), 4) << name;
    ASSERT_EQ(column.cols(), 1) << name;
    EXPECT_EQ(std::memcmp(column.view().data(), values, sizeof(values)), 0) << name;
  }
  expect_refusal<InvalidArgument>([&] { VectorFile file(directory.path("axis.npy")); }, "1 dimensions");
}

TEST(ColumnFile, RefusesAMatrix) {
  const TemporaryDirectory directory;
  const float values[] = {1, 2, 3, 4};
  write_vectors(directory.path("m.fbin"), MatrixView(values, 2, 2));
  expect_refusal<InvalidArgument>([&] { read_column(directory.path("m.fbin")); },
                                  "holds 2 x 2 f32; one row or one column");
}

}  // namespace
}  // namespace kith
