// Factory strings: what they mean, and what is said of those that mean nothing.
#include "index/factory.hpp"

#include <kith/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace kith {
namespace {

std::string refused(std::string_view factory) {
  try {
    (void)Index(factory);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Factory, PartsOfAString) {
  const FactorySpec flat = parse_factory("Flat");
  EXPECT_FALSE(flat.has_lists || flat.code.has_value() || flat.refines);
  const FactorySpec deep = parse_factory("OPQ20_80,IVF65536,PQ20");
  ASSERT_EQ(deep.transforms.size(), 1u);
  EXPECT_EQ(deep.transforms[0].kind, TransformKind::opq);
  EXPECT_EQ(deep.transforms[0].parts, 20);
  EXPECT_EQ(deep.transforms[0].cols, 80);
  EXPECT_TRUE(deep.transforms[0].for_lists);
  EXPECT_FALSE(parse_factory("OPQ16,PQ16").transforms[0].for_lists);
  EXPECT_EQ(deep.lists, 65536);
  EXPECT_EQ(deep.code->code, kProductCode);
  EXPECT_EQ(deep.code->parts, 20);
  EXPECT_EQ(deep.code->bits, 8);
  const FactorySpec chain = parse_factory("IDMap,L2norm,PCAR64,Pad70,RR,Centre,IVF,SQfp16,Refine(SQ8)");
  EXPECT_EQ(chain.transforms.size(), 6u);
  EXPECT_TRUE(chain.has_lists);
  EXPECT_EQ(chain.lists, 0);
  EXPECT_EQ(chain.code->code, kStoredCode);
  EXPECT_EQ(chain.code->dtype, DType::f16);
  EXPECT_EQ(chain.refine->bits, 8);
  EXPECT_EQ(parse_factory("PQ32x4fs").code->bits, 4);
  EXPECT_EQ(parse_factory("PQ16np").code->parts, 16);
  const CodeRecipe local = *parse_factory("IVF4,LSQ7x6").code;
  EXPECT_EQ(local.code, kLocalSearchCode);
  EXPECT_EQ(local.parts, 7);
  EXPECT_EQ(local.bits, 6);
  EXPECT_EQ(parse_factory("RQ8x8").code->code, kResidualCode);
  EXPECT_EQ(parse_factory("RQ8x8").code->norm, CodeNorm::decoded);
  EXPECT_EQ(parse_factory("IVF4,LSQ7x8_Ncqint8").code->norm, CodeNorm::cqint8);
  EXPECT_EQ(parse_factory("RQ7_Nqint8").code->norm, CodeNorm::qint8);
  EXPECT_EQ(parse_factory("LSQ4x4_Nfloat,RFlat").code->norm, CodeNorm::float32);
  EXPECT_EQ(parse_factory("LSQ4x4_Nnone").code->norm, CodeNorm::none);
  EXPECT_TRUE(parse_factory("IVF100,PQ8,RFlat").refines);
  EXPECT_FALSE(parse_factory("IVF100,PQ8,RFlat").refine.has_value());
}

TEST(Factory, AnUnknownPartIsNamedWithWhatThereIs) {
  EXPECT_THAT(refused("Falt"), ::testing::AllOf(::testing::HasSubstr("unknown part 'Falt' of the index 'Falt'"),
                                              ::testing::HasSubstr("known are, in this order: IDMap; OPQm")));
  for (const char* const wrong : {"",
                                  "Flat4",
                                  "flat",
                                  "PQ",
                                  "PQx4",
                                  "IVF3",
                                  "IVF3,",
                                  "IVF-3,Flat",
                                  "PQ8,Flat",
                                  "Flat,PQ8",
                                  "PQ8,RFlat,RFlat",
                                  "PQ8,Refine(",
                                  "PQ8,Refine()",
                                  "PQ8,Refine(OPQ4)",
                                  "IVF4,OPQ4,PQ4",
                                  "PCA,Flat",
                                  "OPQ4_,PQ4",
                                  "PQ4x",
                                  "PQ#"}) {
    EXPECT_THAT(refused(wrong), ::testing::AnyOf(::testing::HasSubstr("unknown part"), ::testing::HasSubstr("does not say")))
        << wrong;
  }
  EXPECT_THAT(refused("IVF3"), ::testing::HasSubstr("needs Flat, SQ8, PQ16"));
  EXPECT_THAT(refused("PQ4,IVF100"), ::testing::HasSubstr("unknown part 'IVF100'"));
}

TEST(Factory, NumbersThatCannotBe) {
  EXPECT_THAT(refused("IVF99999999999999999999,Flat"), ::testing::HasSubstr("too large"));
  EXPECT_THAT(refused("IVF0,Flat"), ::testing::HasSubstr("has a 0"));
  EXPECT_THAT(refused("SQ5"), ::testing::HasSubstr("there are 8, 6, 4, and fp16"));
  EXPECT_THAT(refused("PQ8x12"), ::testing::HasSubstr("codes have 4 to 8"));
  EXPECT_THAT(refused("PQ8x3"), ::testing::HasSubstr("codes have 4 to 8"));
  EXPECT_THAT(refused("LSQ8x9"), ::testing::HasSubstr("8 codebooks of 9 bits"));
  EXPECT_THAT(refused("RQ200x8"), ::testing::HasSubstr("200 codebooks"));
}

TEST(Factory, AMetricThatAKindLacksIsRefused) {
  for (const Metric metric : {Metric::l1, Metric::linf, Metric::chi_square, Metric::hamming}) {
    EXPECT_THROW(Index("IVF4,Flat", {.metric = metric}), Unsupported);
    EXPECT_THROW(Index("PQ4", {.metric = metric}), Unsupported);
    EXPECT_NO_THROW(Index("Flat", {.metric = metric}));
  }
}

TEST(Factory, SpacesAndFaisssWordsForTheSameThingAreReadOver) {
  EXPECT_EQ(Index(" IVF256, PQ16 ").factory(), "IVF256,PQ16");
  EXPECT_EQ(parse_factory("IVF1024_HNSW32,PQ16").lists, 1024);
  EXPECT_EQ(parse_factory("IVF1024_HNSW,PQ16").lists, 1024);
  EXPECT_EQ(parse_factory("IVF256,PQ16x4fsr").code->bits, 4);
}

TEST(Factory, OtherWordsOfFaissAreAnsweredWithAStringThatKithBuilds) {
  const std::pair<const char*, const char*> all[] = {
      {"HNSW32", "Graph64"},         {"HNSW16,SQ8", "Graph32"},    {"HNSW128", "Graph128"},
      {"NSG32", "Graph32"},          {"LSH", "RaBitQ"},            {"ITQ32,LSH", "RaBitQ"},
      {"RaBitQfs", "RaBitQ"},        {"RaBitQ4", "RaBitQ"},        {"PRQ2x4x8", "RQ8x8"},
      {"IVF64,PRQ2x4x8", "RQ8x8"},   {"PLSQ2x4x4", "LSQ8x8"},      {"IMI2x6,PQ16", "IVF4096"},
      {"IVF64,PQ16+8", "PQ16,Refine(PQ8)"}, {"PCAW32,Flat", "PCA32"}, {"PCAWR32,Flat", "PCAR32"},
      {"SQ8_direct", "Flat"},        {"SQ8bit", "SQ8"},            {"ZnLattice3x10_6", "PQ16"},
      {"IVF64(PQ8),Flat", "IVF64"},  {"RCQ2x5,PQ16", "IVF1024"},   {"IVF64_NSG32,Flat", "IVF64"},
      {"LSQ4x8_Nqint4", "LSQ4x8_Nqint8"}, {"BIVF64", "Flat"},      {"BFlat", "Flat"}};
  for (const auto& [theirs, ours] : all) {
    const std::string said = refused(theirs);
    EXPECT_THAT(said, ::testing::HasSubstr("Kith has no part"));
    EXPECT_THAT(said, ::testing::HasSubstr(ours));
    EXPECT_LT(said.size(), 350U) << said;
    const std::string built = std::string(ours).starts_with("IVF") || std::string(ours).starts_with("PCA")
                                  ? std::string(ours) + ",Flat"
                                  : std::string(ours);
    EXPECT_EQ(Index(built).factory(), built);
  }
}

TEST(Factory, ASlipOfThePenIsAnsweredWithWhatWasMeant) {
  EXPECT_THAT(refused("flat"), ::testing::HasSubstr("did you mean 'Flat'?"));
  EXPECT_THAT(refused("ivf256,pq16"), ::testing::HasSubstr("did you mean 'IVF256'?"));
  EXPECT_THAT(refused("IVF256,pq16"), ::testing::HasSubstr("did you mean 'PQ16'?"));
  EXPECT_THAT(refused("Grpah32"), ::testing::HasSubstr("Grpah32"));
  EXPECT_THAT(refused("Grap32"), ::testing::HasSubstr("did you mean 'Graph32'?"));
}

}  // namespace
}  // namespace kith
