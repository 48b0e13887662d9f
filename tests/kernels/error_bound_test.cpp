// The bounds must hold for every pair, on data chosen to strain them: sums of equal signs, large offsets, mixed scales.
#include "kernels/distance/error_bound.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "kernels/distance/scan_rows_cpu.hpp"
#include "kernels/panels/panel_packing.hpp"
#include "reference/data.hpp"
#include "rows/stored_row.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace kith {
namespace {

using reference::Shape;

constexpr Shape kFinite[] = {Shape::gaussian, Shape::far_mean, Shape::near_duplicates, Shape::all_equal,
                             Shape::sorted,   Shape::reversed, Shape::with_zeros,      Shape::mixed_norms};

// The sum in f32, one after the other: the order that loses most.
float plain_product(const float* q, const float* x, int64_t cols, float start, float scale) {
  float sum = start;
  for (int64_t i = 0; i < cols; ++i) sum += (q[i] * scale) * x[i];
  return sum;
}

// Calls check(query, row, cols) for pairs of every kind of data and several widths.
template <typename Check>
void for_pairs(const Check& check) {
  for (const Shape shape : kFinite) {
    for (const int64_t cols : {1, 7, 128, 1000}) {
      SCOPED_TRACE(::testing::Message() << shape << " " << cols);
      const auto queries = reference::make_floats(shape, 8, cols, 3);
      const auto base = reference::make_floats(shape, 64, cols, 4);
      for (int64_t q = 0; q < queries.rows; ++q) {
        for (int64_t i = 0; i < base.rows; ++i) check(queries.row(q), base.row(i), cols);
      }
    }
  }
}

TEST(ErrorBound, HoldsForSquaredDistancesFromProducts) {
  for_pairs([](const float* q, const float* x, int64_t cols) {
    const double qq = canonical_squared_norm(q, cols);
    const double xx = canonical_squared_norm(x, cols);
    const float key = plain_product(q, x, cols, static_cast<float>(xx), -2.0f) + static_cast<float>(qq);
    const float truth = reference::canonical(Metric::sqeuclidean, q, x, cols);
    const ErrorBound bound = squared_l2_product_bound(std::sqrt(qq), cols);
    EXPECT_LE(std::abs(key - truth), bound.at(static_cast<float>(std::sqrt(xx))));
  });
}

TEST(ErrorBound, HoldsForInnerProducts) {
  for_pairs([](const float* q, const float* x, int64_t cols) {
    const float key = plain_product(q, x, cols, 0.0f, -1.0f);
    const float truth = reference::canonical(Metric::inner_product, q, x, cols);
    const ErrorBound bound = inner_product_bound(std::sqrt(canonical_squared_norm(q, cols)), cols);
    EXPECT_LE(std::abs(key - truth), bound.at(static_cast<float>(std::sqrt(canonical_squared_norm(x, cols)))));
  });
}

// The bf16 parts of a vector, high or low, as floats.
std::vector<float> bf16_part(const float* values, int64_t cols, float scale, int part) {
  const int64_t units = units_per_part(PanelFormat::bf16, cols);
  std::vector<uint32_t> packed(static_cast<size_t>(2 * units));
  encode_floats(PanelFormat::bf16, values, cols, scale, packed.data());
  std::vector<float> floats(static_cast<size_t>(cols));
  for (int64_t c = 0; c < cols; ++c) {
    const uint32_t unit = packed[static_cast<size_t>(part * units + c / 2)];
    floats[static_cast<size_t>(c)] = float_of_bits(c % 2 == 0 ? unit << 16 : unit & 0xFFFF0000u);
  }
  return floats;
}

// What tiles compute: the high parts' product, then with both mixed ones added.
TEST(ErrorBound, HoldsForProductsOfParts) {
  for_pairs([](const float* q, const float* x, int64_t cols) {
    const double qq = canonical_squared_norm(q, cols);
    const double xx = canonical_squared_norm(x, cols);
    const auto norm = static_cast<float>(std::sqrt(xx));
    const std::vector<float> high_x = bf16_part(x, cols, 1.0f, 0);
    const std::vector<float> low_x = bf16_part(x, cols, 1.0f, 1);
    for (const bool differences : {false, true}) {
      const float scale = differences ? -2.0f : -1.0f;
      const std::vector<float> high_q = bf16_part(q, cols, scale, 0);
      const std::vector<float> low_q = bf16_part(q, cols, scale, 1);
      const float truth = reference::canonical(differences ? Metric::sqeuclidean : Metric::inner_product, q, x, cols);
      const float offset = differences ? static_cast<float>(qq) : 0.0f;
      const float high =
          plain_product(high_q.data(), high_x.data(), cols, differences ? static_cast<float>(xx) : 0.0f, 1);
      const ErrorBound wide = tile_product_bound(differences, std::sqrt(qq), cols, kHighPartsError);
      EXPECT_LE(std::abs(high + offset - truth), wide.at(norm));
      const float mixed = plain_product(high_q.data(), low_x.data(), cols, high, 1);
      const float all = plain_product(low_q.data(), high_x.data(), cols, mixed, 1);
      const ErrorBound narrow = tile_product_bound(differences, std::sqrt(qq), cols, kBothPartsError);
      EXPECT_LE(std::abs(all + offset - truth), narrow.at(norm));
    }
  });
}

TEST(ErrorBound, HoldsForSumsOfDifferences) {
  for (const Shape shape : reference::kAllShapes) {
    for (const int64_t cols : {1, 7, 128, 1000}) {
      // A second set next to the first: differences of few bits, squares of which underflow for the tiny shape.
      const auto query = reference::without_sign(reference::make_floats(shape, 1, cols, 3));
      auto base = reference::without_sign(reference::make_floats(shape, 64, cols, 4));
      for (int64_t i = 0; i < 32; ++i) {
        for (int64_t c = 0; c < cols; ++c) base.row(i)[c] = query.row(0)[c] * (1.0f + static_cast<float>(i) * 0x1p-23f);
      }
      std::vector<float> values(64), facts(64);
      for (const Metric metric : {Metric::l1, Metric::linf, Metric::chi_square}) {
        scan_rows_cpu(key_kind(metric), query.row(0), base.view(), values.data(), facts.data());
        for (int64_t i = 0; i < base.rows; ++i) {
          const float value = values[static_cast<size_t>(i)];
          const float truth = reference::canonical(metric, query.row(0), base.row(i), cols);
          const double most = value * direct_error(cols) + underflow_error(cols);
          ASSERT_LE(std::abs(static_cast<double>(value) - truth), most)
              << shape << " " << name_of(metric) << " " << cols;
        }
      }
    }
  }
}

TEST(ErrorBound, HoldsForDirectSums) {
  for (const Shape shape : reference::kAllShapes) {
    if (shape == Shape::huge) continue;  // overflows: handled as unknown
    for (const int64_t cols : {1, 7, 128, 1000}) {
      const auto query = reference::make_floats(shape, 1, cols, 3);
      const auto base = reference::make_floats(shape, 64, cols, 4);
      std::vector<float> values(64);
      scan_rows_cpu(KeyKind::squared_l2, query.row(0), base.view(), values.data(), nullptr);
      for (int64_t i = 0; i < base.rows; ++i) {
        const float truth = reference::canonical(Metric::sqeuclidean, query.row(0), base.row(i), cols);
        const double most = values[static_cast<size_t>(i)] * product_error(cols) + underflow_error(cols);
        ASSERT_LE(std::abs(values[static_cast<size_t>(i)] - truth), most) << shape << " " << cols;
      }
    }
  }
}

}  // namespace
}  // namespace kith
