// A new code (sign_code.hpp): its names, its text in files, its codes, and lists of them that are searched.
#include "quantize/sign_code.hpp"

#include "ivf/ivf_check.hpp"
#include "quantize/codec.hpp"
#include "reference/data.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

CodeRecipe sign_recipe() {
  CodeRecipe recipe;
  recipe.code = &kSignEncoder;
  return recipe;
}

TEST(SignCode, HasItsNameAndItsLineInATable) {
  const CodeEncoder* const known[] = {kProductCode, &kSignEncoder};
  const std::string names = known_code_names(known);
  EXPECT_EQ(names, "PQm, PQmxb, Sign");
  NamePart part("Sign", "IVF4,Sign", names);
  const CodeRecipe recipe = parse_code_name(part, known);
  EXPECT_EQ(recipe.code, &kSignEncoder);
  EXPECT_EQ(recipe.code->name(recipe), "Sign");
  const CodeLine line = parse_code_line(recipe.code->text(recipe, 24), known);
  EXPECT_EQ(line.recipe.code, &kSignEncoder);
  EXPECT_EQ(line.cols, 24);
  NamePart other("Sign", "Sign", names);
  EXPECT_THROW((void)parse_code_name(other), InvalidArgument);
  EXPECT_THROW((void)parse_code_line("sign 24"), AboutProblem);
}

TEST(SignCode, DecodesToEitherSideOfTheMean) {
  const auto rows = make_floats(Shape::far_mean, 600, 21, 1);
  const auto codec = Codec::train(sign_recipe(), rows.view(), 0, on_cpu());
  EXPECT_EQ(codec->format().bytes(), 3);
  std::vector<uint8_t> codes(600 * 3);
  codec->encode(rows.view(), codes.data(), on_cpu());
  reference::Matrix<float> decoded(600, 21);
  codec->decode(codes.data(), 600, {decoded.row(0), 600, 21}, on_cpu());
  const std::vector<float>& values = codec->values();
  for (int64_t i = 0; i < 600; ++i) {
    for (size_t c = 0; c < 21; ++c) {
      const float mean = values[c];
      const float spread = values[21 + c];
      const bool above = rows.row(i)[c] > mean;
      const float expected = above ? std::fma(1.0f, 2 * spread, mean - spread) : mean - spread;
      ASSERT_EQ(decoded.row(i)[c], expected) << i << ", " << c;
    }
  }
}

TEST(SignCode, IsSearchedInLists) {
  const auto rows = make_floats(Shape::gaussian, 900, 20, 2);
  const auto queries = make_floats(Shape::gaussian, 15, 20, 3);
  for (const bool residual : {false, true}) {
    for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine}) {
      const auto model = train({"Sign", sign_recipe(), residual}, metric, rows, 6);
      IvfSearch params;
      params.k = 8;
      params.probes = 3;
      const reference::Ivf truth(*model, rows);
      expect_neighbors(search(*model, segments_of(*model, rows, 2), queries, params),
                       truth.search(queries, params.k, 3), params.k);
    }
  }
}

}  // namespace
}  // namespace kith
