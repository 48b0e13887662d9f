#include "quantize/additive/search_books.hpp"

#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

TEST(CodewordGrid, SumsOfRowsAndCodewordsAreExactInAnyOrder) {
  for (const Shape shape : {Shape::gaussian, Shape::far_mean, Shape::mixed_norms, Shape::tiny, Shape::sorted}) {
    SCOPED_TRACE(shape);
    auto words = make_floats(shape, 15 * 16, 24, 1);
    round_to_grid(words.row(0), 15, 4, 24);
    const Codebooks books{words.row(0), 15, 4, 24};
    const CodewordGrid grid(books);
    const auto rows = make_floats(shape, 20, 24, 2);
    for (int64_t i = 0; i < 20; ++i) {
      for (int64_t c = 0; c < 24; ++c) {
        if (!grid.holds(rows.row(i)[c])) continue;
        const float x = grid.rounded(rows.row(i)[c]);
        EXPECT_LE(std::abs(static_cast<double>(x) - static_cast<double>(rows.row(i)[c])), 0.5 * grid.step());
        float up = x;
        float down = x;
        double exact = static_cast<double>(x);
        for (int64_t k = 0; k < 15; ++k) {
          up -= books.word(k, (i + k) % 16)[c];
          down -= books.word(14 - k, (i + 14 - k) % 16)[c];
          exact -= static_cast<double>(books.word(k, (i + k) % 16)[c]);
        }
        ASSERT_EQ(static_cast<double>(up), exact);
        ASSERT_EQ(up, down);
      }
    }
  }
}

TEST(CodewordGrid, RoundedCodebooksLieOnTheirOwnGrid) {
  for (const Shape shape : reference::kAllShapes) {
    SCOPED_TRACE(shape);
    auto words = make_floats(shape, 3 * 16, 7, 5);
    round_to_grid(words.row(0), 3, 4, 7);
    const CodewordGrid grid({words.row(0), 3, 4, 7});
    for (const float value : words.values) ASSERT_EQ(grid.rounded(value), value);
  }
  // Just below a power of two, which rounding reaches.
  std::vector<float> edge(16, 0.99999997f);
  round_to_grid(edge.data(), 1, 4, 1);
  EXPECT_EQ(CodewordGrid({edge.data(), 1, 4, 1}).rounded(edge[0]), edge[0]);
}

TEST(CodewordGrid, BytesAreOnTheGridOfBooksOfBytes) {
  std::vector<float> words(16 * 7);
  for (size_t i = 0; i < words.size(); ++i) words[i] = static_cast<float>(i * 2.3);
  const CodewordGrid grid({words.data(), 7, 4, 1});
  for (int i = 0; i < 256; ++i) EXPECT_EQ(grid.rounded(static_cast<float>(i)), static_cast<float>(i));
  EXPECT_FALSE(grid.holds(NAN));
  EXPECT_FALSE(grid.holds(INFINITY));
}

}  // namespace
}  // namespace kith
