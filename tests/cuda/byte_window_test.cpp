// The bounds of rows that are kept in bytes hold, on hard data too; no GPU is asked.
#include "kernels/matrix/byte_window.hpp"

#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

// A vector as whole numbers times a scale.
struct ByteVector {
  std::vector<int> codes;
  float scale = 0;
  double square = 0;
  float residual = 0;
};

ByteVector byte_vector(const std::vector<double>& values, const std::vector<double>& from, int most) {
  ByteVector rounded;
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::fabs(value));
  const bool known = largest < kByteLargest;
  rounded.scale = known ? byte_scale(largest, most) : 0.0f;
  double lost = 0;
  double whole = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double places = rounded.scale > 0 ? std::rint(values[i] / rounded.scale) : 0;
    rounded.codes.push_back(static_cast<int>(std::clamp<double>(places, -most, most)));
    const double apart = values[i] - static_cast<double>(rounded.scale) * rounded.codes.back();
    lost += apart * apart;
    whole += from[i] * from[i];
    rounded.square += static_cast<double>(rounded.codes.back()) * rounded.codes.back();
  }
  rounded.square *= static_cast<double>(rounded.scale) * rounded.scale;
  rounded.residual = known ? byte_residual(std::sqrt(lost), std::sqrt(whole)) : HUGE_VALF;
  return rounded;
}

// Queries of every shape, and rows of it as `change` makes them.
template <typename Change>
void expect_bounds(const Change& change) {
  for (const Shape shape : reference::kAllShapes) {
    for (const int64_t cols : {1, 7, 128, 1000}) {
      auto rows = make_floats(shape, 60, cols, 1);
      for (int64_t r = 0; r < 60; ++r) {
        for (int64_t c = 0; c < cols; ++c) rows.row(r)[c] = change(rows.row(r)[c]);
      }
      const auto queries = make_floats(shape, 8, cols, 2);
      for (const KeyKind kind : {KeyKind::l2, KeyKind::inner_product}) {
        std::vector<double> centre(static_cast<size_t>(cols), 0.0);
        if (kind == KeyKind::l2) {
          for (int64_t c = 0; c < cols; ++c) centre[static_cast<size_t>(c)] = rows.row(0)[c];
        }
        const auto kept = [&](const float* vector, int most) {
          std::vector<double> values;
          std::vector<double> from;
          for (int64_t c = 0; c < cols; ++c) {
            const double middle = centre[static_cast<size_t>(c)];
            values.push_back(vector[c] - middle);
            from.push_back(std::fabs(vector[c]) + std::fabs(middle));
          }
          return byte_vector(values, from, most);
        };
        for (int64_t q = 0; q < 8; ++q) {
          const ByteVector query = kept(queries.row(q), kQueryCodeMost);
          const ByteQueryBounds asked{query.scale, static_cast<float>(query.square),
                                     static_cast<float>(std::sqrt(query.square) * (1 + 0x1p-22)), query.residual};
          for (int64_t r = 0; r < 60; ++r) {
            const ByteVector row = kept(rows.row(r), kByteCodeMost);
            int64_t product = 0;
            double truth = 0;
            for (int64_t c = 0; c < cols; ++c) {
              const auto at = static_cast<size_t>(c);
              product += int64_t{query.codes[at]} * row.codes[at];
              const double a = queries.row(q)[c];
              const double b = rows.row(r)[c];
              truth += kind == KeyKind::l2 ? (a - b) * (a - b) : -a * b;
            }
            if (kind == KeyKind::l2) truth = std::sqrt(truth);
            const ByteBounds bounds = byte_bounds(
                kind, asked, {row.scale, static_cast<float>(row.square), row.residual}, static_cast<float>(product));
            EXPECT_FALSE(bounds.lower > truth) << static_cast<int>(shape) << " " << cols << " " << bounds.lower;
            EXPECT_FALSE(bounds.upper < truth) << static_cast<int>(shape) << " " << cols << " " << bounds.upper;
            const float limit = byte_limit(kind, static_cast<float>(truth));
            EXPECT_FALSE(limit < truth) << static_cast<int>(shape) << " " << cols;
          }
        }
      }
    }
  }
}

TEST(ByteWindow, BoundsHoldTheDistance) {
  expect_bounds([](float value) { return value; });
}

// Their squares are 0 in f32, which says nothing of their products with queries of ordinary length.
TEST(ByteWindow, BoundsHoldTheDistanceOfVeryShortRows) {
  for (const float size : {2e-24f, 1e-22f, 1e-20f}) {
    expect_bounds([&](float value) { return size * value; });
    expect_bounds([&](float value) { return std::copysign(size, value); });  // kept as they are: no loss of theirs hides it
  }
}

// A window holds few ordinary rows.
TEST(ByteWindow, BoundsAreNarrow) {
  const ByteQueryBounds query{1e-3f, 128, 11.32f, 0.001f};
  const ByteBounds bounds = byte_bounds(KeyKind::l2, query, {0.035f, 128, 0.115f}, 0);
  EXPECT_NEAR(bounds.lower, 16 - 0.116, 1e-3);
  EXPECT_NEAR(bounds.upper, 16 + 0.116, 1e-3);
  EXPECT_TRUE(std::isnan(byte_limit(KeyKind::l2, HUGE_VALF)));
  EXPECT_TRUE(std::isnan(byte_limit(KeyKind::cosine, NAN)));
  EXPECT_NEAR(byte_limit(KeyKind::cosine, 0.5f), 0.5f, 1e-6);
}

}  // namespace
}  // namespace kith
