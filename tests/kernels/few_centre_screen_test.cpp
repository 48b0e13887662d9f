// The f32 screen of few centres is certain only where canonical keys agree with it.
#include "kernels/assign/few_centre_screen.hpp"
#include "core/ordered_key.hpp"
#include "kernels/distance/canonical.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Matrix;
using reference::Shape;

TEST(FewCentreScreen, SuitsFewCentresOfFewColumns) {
  EXPECT_TRUE(suits_few_centres(8, 8));
  EXPECT_TRUE(suits_few_centres(50, 32));
  EXPECT_TRUE(suits_few_centres(64, 64));
  EXPECT_TRUE(suits_few_centres(256, 16));
  EXPECT_FALSE(suits_few_centres(257, 2));
  EXPECT_TRUE(suits_few_centres(12288, 1));
  EXPECT_FALSE(suits_few_centres(12289, 1));
  EXPECT_FALSE(suits_few_centres(65, 64));
  EXPECT_FALSE(suits_few_centres(2, 65));
  EXPECT_TRUE(suits_tiled_centres(1024, 512, 512));
  EXPECT_FALSE(suits_tiled_centres(1025, 512, 512));
  EXPECT_FALSE(suits_tiled_centres(1, 513, 1));
  EXPECT_FALSE(suits_tiled_centres(1, 1, 16385));
  for (int64_t cols = 1; cols <= kFewCentreCols; ++cols) {
    EXPECT_GE(few_centre_width(cols), cols);
    EXPECT_TRUE(few_centre_width(cols) % 4 == 0 || cols == 1);
  }
}

float screened(const float* row, const float* centre, int64_t cols) {
  float sum = 0;
  for (int64_t c = 0; c < cols; ++c) {
    const float difference = row[c] - centre[c];
    sum = std::fmaf(difference, difference, sum);
  }
  return sum;
}

// Centres around a row at distances that differ by about as much as f32 can tell, far from the origin and not, of
// ordinary, tiny and huge values: what is certain is true.
TEST(FewCentreScreen, IsCertainOnlyOfTheNearest) {
  int certain = 0;
  int uncertain = 0;
  for (const int64_t cols : {1, 3, 8, 17, 64}) {
    for (const float unit : {1.0f, 1e-21f, 1e-22f, 1e18f}) {
      for (const float mean : {0.0f, 3000.0f}) {
        const auto noise = make_floats(Shape::gaussian, 1000, cols, static_cast<uint64_t>(cols));
        for (int64_t i = 0; i + 1 < noise.rows; i += 2) {
          std::vector<float> row(static_cast<size_t>(cols), unit * mean);
          std::vector<float> near(static_cast<size_t>(cols));
          std::vector<float> far(static_cast<size_t>(cols));
          const float apart = std::ldexp(1.0f, -static_cast<int>(i % 30));
          for (size_t c = 0; c < row.size(); ++c) {
            const float step = unit * noise.row(i)[c];
            near[c] = row[c] + step;
            far[c] = row[c] - step * (1 + apart * std::fabs(noise.row(i + 1)[c]));
          }
          const float one = screened(row.data(), near.data(), cols);
          const float other = screened(row.data(), far.data(), cols);
          const bool sure = std::fmax(one, other) > few_centre_limit(std::fmin(one, other), cols);
          ++(sure ? certain : uncertain);
          if (!sure) continue;
          const float key = canonical_pair<KeyKind::squared_l2>(row.data(), near.data(), cols);
          const float other_key = canonical_pair<KeyKind::squared_l2>(row.data(), far.data(), cols);
          EXPECT_NE(ordered_key(key), ordered_key(other_key));
          EXPECT_EQ(one < other, key < other_key);
        }
      }
    }
  }
  EXPECT_GT(certain, 1000);
  EXPECT_GT(uncertain, 1000);
}

// Squares of half the smallest number and more become that number: many columns of them are off by half their sum.
TEST(FewCentreScreen, IsNotCertainOfManySquaresThatVanish) {
  constexpr int64_t kManyCols = 16384;
  ASSERT_TRUE(suits_wide_few_centres(2, kManyCols));
  const std::vector<float> row(kManyCols, 0.0f);
  const std::vector<float> near(kManyCols, static_cast<float>(std::sqrt(0.51 * 0x1p-149)));
  std::vector<float> far(kManyCols, 0.0f);
  std::fill_n(far.begin(), kManyCols / 2, static_cast<float>(std::sqrt(1.49 * 0x1p-149)));
  EXPECT_LT(canonical_pair<KeyKind::squared_l2>(row.data(), near.data(), kManyCols),
            canonical_pair<KeyKind::squared_l2>(row.data(), far.data(), kManyCols));
  const float of_near = screened(row.data(), near.data(), kManyCols);
  const float of_far = screened(row.data(), far.data(), kManyCols);
  EXPECT_GT(of_near, of_far);
  EXPECT_FALSE(of_near > few_centre_limit(of_far, kManyCols));
}

TEST(FewCentreScreen, IsNeverCertainOfWhatIsNoNumber) {
  EXPECT_FALSE(INFINITY > few_centre_limit(INFINITY, 8));
  EXPECT_FALSE(INFINITY > few_centre_limit(3.40282e38f, 64));
  EXPECT_FALSE(0.0f > few_centre_limit(0.0f, 8));
}

}  // namespace
}  // namespace kith
