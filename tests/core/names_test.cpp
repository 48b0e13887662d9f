#include <kith/dtype.hpp>
#include <kith/error.hpp>
#include <kith/metric.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

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

TEST(Metric, NamesOfOtherLibraries) {
  EXPECT_EQ(parse_metric("euclidean"), Metric::l2);
  EXPECT_EQ(parse_metric("manhattan"), Metric::l1);
  EXPECT_EQ(parse_metric("cityblock"), Metric::l1);
  EXPECT_EQ(parse_metric("chebyshev"), Metric::linf);
  EXPECT_EQ(parse_metric("ip"), Metric::inner_product);
  EXPECT_EQ(parse_metric("dot"), Metric::inner_product);
  EXPECT_EQ(parse_metric("l2sq"), Metric::sqeuclidean);
}

std::string refusal(const char* name) {
  try {
    parse_metric(name);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(Metric, AnUnknownNameIsAnsweredWithTheKnownOnes) {
  EXPECT_THAT(refusal("euclid"), ::testing::AllOf(::testing::HasSubstr("'euclid'"), ::testing::HasSubstr("sqeuclidean")));
}

TEST(Metric, FaissesNameForTheSquareIsNotTakenForTheRoot) {
  EXPECT_THAT(refusal("L2"), ::testing::HasSubstr("FAISS's L2 is sqeuclidean"));
}

TEST(Metric, ASlipIsAnsweredWithWhatWasMeant) {
  EXPECT_THAT(refusal("euclidian"), ::testing::HasSubstr("did you mean euclidean?"));
  EXPECT_THAT(refusal("cosin"), ::testing::HasSubstr("did you mean cosine?"));
  EXPECT_THAT(refusal("innerproduct"), ::testing::HasSubstr("did you mean inner_product?"));
  EXPECT_THAT(refusal("l3"), ::testing::Not(::testing::HasSubstr("did you mean")));
  EXPECT_THAT(refusal(""), ::testing::Not(::testing::HasSubstr("did you mean")));
}

}  // namespace
}  // namespace kith
