// Quantizers by their names and in files, and what Python subtracts from vectors, in an index's file.
#include <kith/error.hpp>
#include <kith/index.hpp>
#include <kith/quantizer.hpp>

#include "index/index_access.hpp"
#include "index/index_file.hpp"
#include "io/temporary_directory.hpp"
#include "reference/data.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

template <typename Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

std::vector<uint8_t> codes_of(const Quantizer& quantizer, const MatrixView& rows) {
  return std::visit(
      [&](const auto& made) {
        std::vector<uint8_t> codes(static_cast<size_t>(rows.rows() * made.code_bytes()));
        made.encode(rows, MutableMatrixView(codes.data(), rows.rows(), made.code_bytes()));
        return codes;
      },
      quantizer);
}

TEST(QuantizerFile, WhatWasTrainedIsLoaded) {
  const testing::TemporaryDirectory directory;
  const auto rows = make_floats(Shape::gaussian, 300, 12, 1);
  for (const char* const name : {"PQ4", "PQ6x4", "SQ8", "SQ6", "SQ4", "SQfp16", "LSQ2x4", "RQ3x3"}) {
    SCOPED_TRACE(name);
    Quantizer quantizer = make_quantizer(name, 3);
    EXPECT_EQ(name_of(quantizer), name);
    const std::string path = directory.path("q.kith");
    const auto save = [&] { std::visit([&](const auto& made) { save_quantizer(made, path); }, quantizer); };
    EXPECT_THAT(refusal(save), ::testing::HasSubstr("must be trained before it is saved"));
    std::visit([&](auto& made) { made.train(rows.view()); }, quantizer);
    save();
    const Quantizer loaded = load_quantizer(path);
    EXPECT_EQ(name_of(loaded), name);
    EXPECT_EQ(codes_of(loaded, rows.view()), codes_of(quantizer, rows.view()));
    EXPECT_THAT(refusal([&] { (void)Index::load(path); }),
                ::testing::HasSubstr("holds a quantizer; give a .kith file of an index"));
  }
}

// How codes are found is part of a quantizer: without it a loaded one would give other codes.
TEST(QuantizerFile, TheSearchForCodesSurvives) {
  const testing::TemporaryDirectory directory;
  const auto rows = make_floats(Shape::gaussian, 300, 12, 1);
  LocalSearchParams params;
  params.codebooks = 3;
  params.bits = 4;
  params.rounds = 2;
  params.sweeps = 1;
  params.perturbed = 3;
  params.order = SweepOrder::random;
  LocalSearchQuantizer quantizer(params);
  quantizer.train(rows.view());
  save_quantizer(quantizer, directory.path("q.kith"));
  const Quantizer loaded = load_quantizer(directory.path("q.kith"));
  const LocalSearchParams& found = std::get<LocalSearchQuantizer>(loaded).params();
  EXPECT_EQ(found.sweeps, 1);
  EXPECT_EQ(found.perturbed, 3);
  EXPECT_EQ(found.order, SweepOrder::random);
  EXPECT_EQ(codes_of(loaded, rows.view()), codes_of(Quantizer(std::move(quantizer)), rows.view()));
  EXPECT_THAT(refusal([] { (void)make_quantizer("LSQ4x4_Nqint8"); }), ::testing::HasSubstr("leave out '_Nqint8'"));
}

TEST(QuantizerFile, ParametersSurvive) {
  const testing::TemporaryDirectory directory;
  const auto rows = make_floats(Shape::gaussian, 300, 12, 1);
  for (const char* const name : {"PQ4x4", "SQ8", "SQfp16"}) {
    Quantizer quantizer = make_quantizer(name, UINT64_MAX, /*check_finite=*/false);
    std::visit([&](auto& made) { made.train(rows.view()); }, quantizer);
    std::visit([&](const auto& made) { save_quantizer(made, directory.path("q.kith")); }, quantizer);
    const Quantizer loaded = load_quantizer(directory.path("q.kith"));
    EXPECT_FALSE(std::visit([](const auto& made) { return made.params().check_finite; }, loaded));
    if (const auto* const product = std::get_if<ProductQuantizer>(&loaded)) {
      EXPECT_EQ(product->params().seed, UINT64_MAX);
    }
  }
}

TEST(QuantizerFile, OtherNamesAreNoQuantizers) {
  for (const char* const name : {"Flat", "IVF4,SQ8", "RR,PQ4", "PQ4,RFlat", "SQbf16"}) {
    EXPECT_THAT(refusal([&] { (void)make_quantizer(name); }),
                ::testing::HasSubstr("is not a quantizer; there are PQm"));
  }
  EXPECT_THAT(refusal([] { (void)make_quantizer("XQ8"); }), ::testing::HasSubstr("unknown part 'XQ8'"));
}

TEST(QuantizerFile, WhatWasSubtractedIsKept) {
  const testing::TemporaryDirectory directory;
  const auto rows = make_floats(Shape::gaussian, 40, 3, 1);
  const Resources resources;
  Index index("Flat");
  index.add(rows.view());
  const std::string path = directory.path("x.kith");
  IndexParts parts = IndexAccess::parts(index, resources);
  parts.subtracted = {1.7e9, 0, -0.1};
  save_parts(parts, path, resources);
  EXPECT_EQ(load_parts(path, resources).subtracted, parts.subtracted);
  EXPECT_EQ(Index::load(path).offset(), parts.subtracted);
  for (const std::vector<double>& wrong :
       {std::vector<double>{1, 2}, std::vector<double>{1, 2, std::numeric_limits<double>::quiet_NaN()}}) {
    parts.subtracted = wrong;
    EXPECT_THAT(refusal([&] { save_parts(parts, path, resources); }), ::testing::HasSubstr("subtracted"));
  }
  parts.subtracted.clear();
  save_parts(parts, path, resources);
  EXPECT_EQ(Index::load(path).size(), 40);
}

}  // namespace
}  // namespace kith
