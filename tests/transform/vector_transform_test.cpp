// The class that users have: steps by name, training from memory and files, errors.
#include <kith/error.hpp>
#include <kith/vector_transform.hpp>

#include "io/temporary_directory.hpp"
#include "transform/trained.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Matrix;
using reference::Shape;

TEST(TransformSpec, IsReadFromFactoryWords) {
  const auto specs = parse_transforms("PCA64,OPQ16,OPQ20_80,RR,RR7,Centre,L2norm,Pad128");
  ASSERT_EQ(specs.size(), 8u);
  EXPECT_EQ(specs[0].kind, TransformKind::pca);
  EXPECT_EQ(specs[0].cols, 64);
  EXPECT_EQ(specs[1].parts, 16);
  EXPECT_EQ(specs[1].cols, 0);
  EXPECT_EQ(specs[2].parts, 20);
  EXPECT_EQ(specs[2].cols, 80);
  EXPECT_EQ(specs[3].kind, TransformKind::random_rotation);
  EXPECT_EQ(specs[4].cols, 7);
  EXPECT_EQ(specs[5].kind, TransformKind::centring);
  EXPECT_EQ(specs[6].kind, TransformKind::unit_length);
  EXPECT_EQ(specs[7].kind, TransformKind::padding);
  for (const char* word : {"", "PCA", "PCA0", "PCA-3", "PCA64x", "OPQ", "OPQ16_", "OPQ_16", "OPQ1616161616161", "Pad",
                           "l2norm", "IVF16", "RRx", " RR"}) {
    EXPECT_FALSE(parse_transform(word)) << word;
  }
  EXPECT_THROW(parse_transforms("RR,"), InvalidArgument);
  EXPECT_EQ(transformed_cols(specs[2], 96), 80);
  EXPECT_THROW((void)transformed_cols(specs, 32), InvalidArgument);
}

Matrix<float> applied_to(const VectorTransform& transform, const Matrix<float>& rows) {
  Matrix<float> out(rows.rows, transform.dimension_out());
  transform.apply(rows.view(), MutableMatrixView(out.values.data(), out.rows, out.cols), cpu_only(2));
  return out;
}

TEST(VectorTransform, IsTrainedFromFilesAsFromMemory) {
  const testing::TemporaryDirectory directory;
  const Matrix<float> rows = make_floats(Shape::gaussian, 4500, 12, 1);
  const std::string path = directory.path("rows.fvecs");
  write_vectors(path, rows.view());
  const VectorFile file(path);
  for (const char* steps : {"PCA5", "L2norm,OPQ3", "Centre"}) {
    VectorTransform from_memory({steps, 4});
    VectorTransform from_file({steps, 4});
    EXPECT_FALSE(from_memory.trained());
    EXPECT_EQ(from_memory.dimension_in(), 0);
    from_memory.train(rows.view(), cpu_only(2));
    from_file.train(file, cpu_only(1));
    EXPECT_EQ(from_memory.dimension_in(), 12);
    const Matrix<float> expected = applied_to(from_memory, rows);
    EXPECT_EQ(applied_to(from_file, rows).values, expected.values) << steps;
    VectorTransform copied({steps, 4});
    copied.set_steps(from_memory.steps(), cpu_only(1));
    EXPECT_EQ(applied_to(copied, rows).values, expected.values) << steps;
  }
}

TEST(VectorTransform, SaysWhatIsWrongAndKeepsWhatItHad) {
  EXPECT_THROW(VectorTransform({"PCA"}), InvalidArgument);
  VectorTransform transform({"PCA2"});
  const Matrix<float> rows = make_floats(Shape::gaussian, 50, 4, 1);
  Matrix<float> out(50, 2);
  const MutableMatrixView to(out.values.data(), 50, 2);
  EXPECT_THROW(transform.apply(rows.view(), to, cpu_only(1)), InvalidState);
  EXPECT_THROW((void)transform.steps(), InvalidState);
  transform.train(rows.view(), cpu_only(1));
  const Matrix<float> before = applied_to(transform, rows);
  EXPECT_THROW(transform.train(Matrix<float>(10, 1).view(), cpu_only(1)), InvalidArgument);
  EXPECT_THROW(transform.set_steps({}), InvalidArgument);
  EXPECT_EQ(applied_to(transform, rows).values, before.values);
  Matrix<float> bad = rows;
  bad.row(9)[1] = INFINITY;
  EXPECT_THROW(transform.apply(bad.view(), to, cpu_only(1)), InvalidArgument);
  EXPECT_THROW(transform.apply(Matrix<float>(50, 5).view(), to, cpu_only(1)), InvalidArgument);
}

TEST(VectorTransform, IsAppliedWhileAnotherThreadTrains) {
  const Matrix<float> rows = make_floats(Shape::gaussian, 500, 8, 1);
  VectorTransform transform({"PCA4"});
  transform.train(rows.view(), cpu_only(1));
  const Matrix<float> expected = applied_to(transform, rows);
  std::thread trainer([&] {
    for (int i = 0; i < 5; ++i) transform.train(rows.view(), cpu_only(1));
  });
  for (int i = 0; i < 10; ++i) EXPECT_EQ(applied_to(transform, rows).values, expected.values);
  trainer.join();
}

}  // namespace
}  // namespace kith
