// What a comparison of all pairs says of the scale of rows is what their sample says.
#include "kernels/assign/rows_seen.hpp"

#include "cluster/data/data_scale.hpp"
#include "cluster/data/data_survey.hpp"
#include "cluster/fitted.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>

namespace kith {
namespace {

using reference::make_floats;
using reference::Matrix;
using reference::Shape;

// As the kernels of few centres see it.
bool seen_plain(const Matrix<float>& rows, const Matrix<float>& centres) {
  float largest = 0;
  for (const float value : rows.values) largest = std::max(largest, std::fabs(value));
  for (const float value : centres.values) largest = std::max(largest, std::fabs(value));
  const float* const probe = rows.row(last_sampled_row(rows.rows));
  float least = INFINITY;
  for (int64_t c = 0; c < centres.rows; ++c) {
    float sum = 0;
    for (int64_t i = 0; i < rows.cols; ++i) {
      const float difference = probe[i] - centres.row(c)[i];
      sum = std::fma(difference, difference, sum);
    }
    least = std::min(least, sum);
  }
  return std::bit_cast<uint32_t>(largest) <= kLargestPlainBits && least > probe_limit(rows.cols);
}

int scale_by_sample(const Matrix<float>& rows, const Matrix<float>& centres) {
  KMeansRows given;
  given.info = RowsInfo(rows.view());
  given.open = [&](int64_t, const Resources&) { return std::make_unique<ViewSource>(rows.view()); };
  return scale_exponent(given, centres.view(), cpu_resources(1));
}

TEST(RowsSeen, ArePlainOnlyWhereTheSampleSaysSo) {
  int plain = 0;
  int scaled = 0;
  for (const Shape data : {Shape::gaussian, Shape::far_mean, Shape::near_duplicates, Shape::with_zeros}) {
    for (const int64_t cols : {1, 3, 40}) {
      for (const int64_t count : {1, 5, 300}) {
        for (int exponent = -75; exponent <= 75; exponent += 3) {
          for (const int apart : {0, 3, -20}) {  // of the centres' scale
            SCOPED_TRACE(::testing::Message() << static_cast<int>(data) << ", " << count << " x " << cols << ", 2^"
                                              << exponent << ", centres 2^" << exponent + apart);
            auto rows = make_floats(data, count, cols, 1);
            auto centres = make_floats(data, 7, cols, 2);
            for (float& value : rows.values) value = std::ldexp(value, exponent);
            for (float& value : centres.values) value = std::ldexp(value, exponent + apart);
            const int scale = scale_by_sample(rows, centres);
            scaled += scale != 0 ? 1 : 0;
            if (!seen_plain(rows, centres)) continue;
            ++plain;
            EXPECT_EQ(scale, 0);
          }
        }
      }
    }
  }
  EXPECT_GT(plain, 1000);
  EXPECT_GT(scaled, 1000);
}

TEST(RowsSeen, ArePlainWhereTheyAreOrdinary) {
  for (const int exponent : {-30, 0, 40}) {
    auto rows = make_floats(Shape::gaussian, 1000, 16, 1);
    for (float& value : rows.values) value = std::ldexp(value, exponent);
    Matrix<float> centres(10, 16);  // the first rows
    std::copy_n(rows.values.begin(), centres.values.size(), centres.values.begin());
    EXPECT_TRUE(seen_plain(rows, centres)) << exponent;
  }
}

TEST(RowsSeen, KnowsTheLastRowOfASample) {
  EXPECT_EQ(last_sampled_row(1), 0);
  EXPECT_EQ(last_sampled_row(256), 248);  // 32 samples
  EXPECT_EQ(last_sampled_row(1000), 992);
}

}  // namespace
}  // namespace kith
