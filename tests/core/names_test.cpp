#include <kith/dtype.hpp>
#include <kith/error.hpp>
#include <kith/metric.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kith {
namespace {

TEST(DType, NamesAndSizes) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::u8, DType::i8}) {
    EXPECT_EQ(parse_dtype(name_of(dtype)), dtype);
  }
  EXPECT_EQ(size_of(DType::f32), 4);
  EXPECT_EQ(size_of(DType::bf16), 2);
  EXPECT_EQ(size_of(DType::i8), 1);
}

TEST(Metric, NamesGoBothWays) {
  for (const Metric metric : {Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::cosine}) {
    EXPECT_EQ(parse_metric(name_of(metric)), metric);
  }
}

TEST(Metric, AnUnknownNameIsAnsweredWithTheKnownOnes) {
  try {
    parse_metric("euclid");
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("'euclid'"), testing::HasSubstr("sqeuclidean")));
  }
}

}  // namespace
}  // namespace kith
