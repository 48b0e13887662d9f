// What the windows of a join on a GPU promise, with its arithmetic done here: halves, products of them in f32.
#include "graph/build/nn_descent/join_window.hpp"

#include "core/half.hpp"
#include "reference/brute_force.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

struct Operand {
  std::vector<float> halves;
  JoinBounds bounds;
};

// As launch_query_operands() makes them, but for the order of sums.
Operand operand_of(KeyKind kind, const float* row, const std::vector<float>& centre, float common) {
  const auto cols = static_cast<int64_t>(centre.size());
  std::vector<float> values(row, row + cols);
  float scale = common;
  if (kind == KeyKind::cosine) {
    const double inverse = canonical_inverse_norm(canonical_squared_norm(row, cols));
    for (float& value : values) value = static_cast<float>(static_cast<double>(value) * inverse);
  } else if (kind == KeyKind::inner_product) {
    float largest = 0;
    for (const float value : values) largest = std::max(largest, std::abs(value));
    scale = operand_scale(largest);
  } else {
    for (int64_t c = 0; c < cols; ++c) values[static_cast<size_t>(c)] -= centre[static_cast<size_t>(c)];
  }
  Operand operand;
  float squares = 0;
  double residuals = 0;
  bool inside = true;
  for (const float value : values) {
    const float scaled = value * scale;
    inside = inside && std::abs(scaled) < 65504.0f;
    const float half = inside ? static_cast<float>(half_of(scaled)) : 0.0f;
    operand.halves.push_back(half);
    squares += half * half;
    residuals += (static_cast<double>(scaled) - half) * (static_cast<double>(scaled) - half);
  }
  const float slack = 1.0001f + static_cast<float>(cols) * 1e-7f;
  const float norm = std::sqrt(squares) * slack;
  operand.bounds = {squares, norm, static_cast<float>(std::sqrt(residuals)) * slack + norm * 2.4e-7f + 1e-30f, scale};
  const bool zero = kind == KeyKind::cosine && squares == 0;
  if (!inside || zero || !scale_is_sure(kind, scale)) operand.bounds.scale = 0;
  return operand;
}

float product(const Operand& a, const Operand& b) {
  float sum = 0;
  for (size_t i = 0; i < a.halves.size(); ++i) sum += a.halves[i] * b.halves[i];
  return sum;
}

TEST(JoinWindow, NeverRulesOutTheNearest) {
  constexpr int64_t kRows = 48;
  for (const Shape shape : reference::kAllShapes) {
    for (const Metric metric : {Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::cosine}) {
      for (const int64_t cols : {1, 7, 96}) {
        SCOPED_TRACE(::testing::Message() << shape << " " << name_of(metric) << " " << cols);
        const KeyKind kind = key_kind(metric);
        const auto x = make_floats(shape, kRows, cols, 5);
        std::vector<float> centre(static_cast<size_t>(cols), 0.0f);
        float largest = kind == KeyKind::cosine ? 1.0f : 0.0f;
        if (has_differences(kind)) {
          for (int64_t c = 0; c < cols; ++c) {
            double sum = 0;
            for (int64_t i = 0; i < kRows; ++i) sum += static_cast<double>(x.row(i)[c]);
            centre[static_cast<size_t>(c)] = static_cast<float>(sum / kRows);
          }
          for (int64_t i = 0; i < kRows * cols; ++i) {
            largest = std::max(largest, std::abs(x.row(0)[i] - centre[static_cast<size_t>(i % cols)]));
          }
        }
        std::vector<Operand> operands;
        OperandBounds others{0, 0};
        for (int64_t i = 0; i < kRows; ++i) {
          operands.push_back(operand_of(kind, x.row(i), centre, operand_scale(largest)));
          const JoinBounds& bounds = operands.back().bounds;
          if (bounds.scale == 0) continue;
          others.norm = std::max(others.norm, bounds.norm * join_factor(kind, bounds));
          others.residual = std::max(others.residual, bounds.residual * join_factor(kind, bounds));
        }
        for (int64_t i = 0; i < kRows; ++i) {
          const Operand& mine = operands[static_cast<size_t>(i)];
          if (mine.bounds.scale == 0) continue;
          const JoinWindow window = join_window(kind, cols, mine.bounds, others);
          std::vector<float> keys;
          std::vector<float> values;
          for (int64_t j = 0; j < kRows; ++j) {
            const Operand& other = operands[static_cast<size_t>(j)];
            if (j == i || other.bounds.scale == 0) continue;
            keys.push_back(reference::canonical(metric, x.row(i), x.row(j), cols));
            values.push_back(join_value(kind, product(mine, other), join_weight(kind, other.bounds)));
          }
          if (keys.empty()) continue;
          const float limit = nearest_limit(window, *std::min_element(values.begin(), values.end()));
          const float nearest = *std::min_element(keys.begin(), keys.end());
          for (size_t j = 0; j < keys.size(); ++j) {
            if (keys[j] == nearest) {
              ASSERT_LE(values[j], limit) << i;
            }
            ASSERT_LE(values[j], key_limit(window, keys[j])) << i;
            ASSERT_LE(key_below(window, values[j]), keys[j]) << i;
          }
        }
      }
    }
  }
}

// It rules out what is clearly farther: a window of everything would be right too.
TEST(JoinWindow, RulesOutMost) {
  const auto x = make_floats(Shape::gaussian, 200, 64, 5);
  const std::vector<float> centre(64, 0.0f);
  std::vector<Operand> operands;
  OperandBounds others{0, 0};
  for (int64_t i = 0; i < 200; ++i) {
    operands.push_back(operand_of(KeyKind::l2, x.row(i), centre, operand_scale(4)));
    others.norm = std::max(others.norm, operands.back().bounds.norm);
    others.residual = std::max(others.residual, operands.back().bounds.residual);
  }
  int64_t left = 0;
  for (size_t i = 0; i < 200; ++i) {
    std::vector<float> values;
    for (size_t j = 0; j < 200; ++j) {
      if (j != i)
        values.push_back(
            join_value(KeyKind::l2, product(operands[i], operands[j]), join_weight(KeyKind::l2, operands[j].bounds)));
    }
    const JoinWindow window = join_window(KeyKind::l2, 64, operands[i].bounds, others);
    const float limit = nearest_limit(window, *std::min_element(values.begin(), values.end()));
    left += std::count_if(values.begin(), values.end(), [&](float value) { return value <= limit; });
  }
  EXPECT_LT(left, 220);  // of 200 nearest
}

}  // namespace
}  // namespace kith
