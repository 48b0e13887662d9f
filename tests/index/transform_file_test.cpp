// A transform comes back from its file as it was, parameters included; a damaged file is an error.
#include <kith/error.hpp>
#include <kith/vector_transform.hpp>

#include "index/index_check.hpp"
#include "io/temporary_directory.hpp"
#include "io/thrown.hpp"
#include "reference/data.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

TEST(TransformFile, ComesBackAsItWas) {
  const auto rows = make_floats(Shape::gaussian, 500, 12, 1);
  const testing::TemporaryDirectory directory;
  for (const char* const steps : {"PCA5", "OPQ4", "OPQ3_6", "RR20", "Centre,L2norm,Pad16", "L2norm,PCA8,RR"}) {
    SCOPED_TRACE(steps);
    VectorTransform made({steps, 7, false});
    made.train(rows.view(), on_cpu());
    save_transform(made, directory.path("t.kith"), on_cpu());
    const std::string once = directory.read("t.kith");
    const VectorTransform read = load_transform(directory.path("t.kith"), on_cpu());
    EXPECT_EQ(read.params().steps, steps);
    EXPECT_EQ(read.params().seed, 7u);
    EXPECT_FALSE(read.params().check_finite);
    reference::Matrix<float> a(500, made.dimension_out());
    reference::Matrix<float> b(500, made.dimension_out());
    made.apply(rows.view(), MutableMatrixView(a.values.data(), 500, made.dimension_out()), on_cpu());
    read.apply(rows.view(), MutableMatrixView(b.values.data(), 500, read.dimension_out()), on_cpu());
    EXPECT_EQ(a.values, b.values);
    save_transform(read, directory.path("t.kith"), on_cpu());
    EXPECT_TRUE(directory.read("t.kith") == once) << "other bytes";
  }
}

TEST(TransformFile, SaysWhatIsWrong) {
  const auto rows = make_floats(Shape::gaussian, 100, 6, 1);
  const testing::TemporaryDirectory directory;
  VectorTransform transform({"RR4"});
  EXPECT_THROW(save_transform(transform, directory.path("t.kith"), on_cpu()), InvalidState);
  transform.train(rows.view(), on_cpu());
  save_transform(transform, directory.path("t.kith"), on_cpu());
  const std::string whole = directory.read("t.kith");
  for (const size_t length : {size_t{0}, size_t{10}, whole.size() / 2, whole.size() - 1}) {
    const std::string path = directory.overwrite("cut.kith", whole.substr(0, length));
    EXPECT_THROW(load_transform(path, on_cpu()), CorruptFile) << length;
  }
  const auto error = testing::thrown<InvalidArgument>(
      [] { load_transform(std::string(KITH_GOLDEN) + "/kith/codec_pq4.kith", on_cpu()); });
  ASSERT_TRUE(error);
  EXPECT_THAT(error->what(), ::testing::HasSubstr("holds a quantizer"));
  EXPECT_THROW(load_transform(std::string(KITH_GOLDEN) + "/kith/transforms.kith", on_cpu()), InvalidArgument);
  EXPECT_THROW(load_transform(directory.path("none.kith"), on_cpu()), IoError);
}

}  // namespace
}  // namespace kith
