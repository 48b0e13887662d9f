// The bounds behind the search of lists on matrix units hold: a model of its arithmetic on the CPU, with halves and f32
// sums, against distances in float64.
#include "core/half.hpp"
#include "ivf/segment/device_lists_cuda.hpp"
#include "kernels/matrix/operand_bounds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace kith {
namespace {

const ListKey kKeys[] = {KeyKind::l2,
                         KeyKind::squared_l2,
                         KeyKind::inner_product,
                         KeyKind::cosine,
                         {KeyKind::l2, true},
                         {KeyKind::squared_l2, true},
                         {KeyKind::l2, false, true},
                         {KeyKind::squared_l2, false, true},
                         {KeyKind::cosine, false, false, true},
                         {KeyKind::cosine, false, true, true}};

struct Rounded {
  std::vector<double> halves;
  double squared_norm = 0;
  double residual = 0;
};

Rounded rounded(const std::vector<double>& values) {
  Rounded result;
  for (const double value : values) {
    const auto half = static_cast<double>(static_cast<float>(half_of(static_cast<float>(value))));
    result.halves.push_back(half);
    result.squared_norm += half * half;
    result.residual += (value - half) * (value - half);
  }
  result.residual = std::sqrt(result.residual) * (1 + 0x1p-20);
  return result;
}

double product(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// One query and vectors of one list, as the scan sees them.
class Model {
 public:
  // Every other vector, and the query, is `shorter` times as far from the centre.
  Model(const ListKey& key, size_t cols, double scale, double spread, uint32_t seed, double shorter = 1)
      : key_(key), kind_(key.kind), random_(seed) {
    const KeyKind kind = key.kind;
    centre_ = vector(cols, scale * spread);
    query_ = vector(cols, scale * shorter);
    for (size_t i = 0; i < cols; ++i) query_[i] = as_float(query_[i] + centre_[i]);
    double largest = 0;
    const std::vector<double> around = centre_;
    if (key.unit) {
      query_ = at_unit_length(query_);
      centre_ = at_unit_length(centre_);
      largest = 0x1p-12;
    }
    for (int i = 0; i < 60; ++i) {
      std::vector<double> stored = vector(cols, scale * (i % 2 == 0 ? shorter : 1));
      for (size_t col = 0; col < cols; ++col) stored[col] = as_float(stored[col] + around[col]);
      if (key.unit) stored = at_unit_length(stored);
      for (size_t col = 0; col < cols; ++col) largest = std::max(largest, std::abs(stored[col] - centre_[col]));
      stored_.push_back(stored);
    }
    scale_ = operand_scale(static_cast<float>(largest));
    double widest = 0;
    for (const double value : query_) widest = std::max(widest, std::abs(value));
    query_scale_ = key.has_centred() ? scale_ : operand_scale(static_cast<float>(widest));
    std::vector<double> operand;
    for (size_t i = 0; i < cols; ++i) {
      const double value = key.unit ? as_float(query_[i]) : query_[i];
      operand.push_back(value * query_scale_ - (key.has_centred() ? centre_[i] * scale_ : 0.0));
    }
    rounded_query_ = rounded(operand);
    ListMaxima list{0, 0, 0};
    for (const std::vector<double>& stored : stored_) {
      std::vector<double> difference;
      for (size_t i = 0; i < cols; ++i) difference.push_back((stored[i] - centre_[i]) * scale_);
      rounded_.push_back(rounded(difference));
      const double times =
          kind == KeyKind::cosine && !key.unit ? static_cast<double>(factor(stored)) * (1 + 0x1p-22) : 1.0;
      list.norm = std::max(list.norm, above(times * std::sqrt(rounded_.back().squared_norm)));
      list.residual = std::max(list.residual, above(times * rounded_.back().residual));
      if (key.by_norm) {
        const double square = product(stored, stored);
        const double unlike =
            std::normal_distribution<double>(0, 0.3 * scale * scale * static_cast<double>(cols))(random_);
        norms_.push_back(as_float(square + unlike));
        list.factor =
            std::max(list.factor, above(2 * std::abs(term(norms_.size() - 1)) + square * scale_ * scale_ * 0x1p-23));
      } else {
        list.factor = std::max(list.factor, factor(stored));
      }
    }
    RoundedQuery rounded{rounded_query_.squared_norm, rounded_query_.residual, 0, 0};
    if (key.unit) rounded.residual += scale_ * kUnitMoved;
    if (!key.has_centred()) {
      rounded.offset = product(query_, centre_) * scale_ * query_scale_;
      rounded.inverse_norm = 1 / (std::sqrt(product(query_, query_)) * query_scale_);
    }
    bounds_ = pair_bounds(key, static_cast<int64_t>(cols), list, rounded);
  }

  void check() const {
    ASSERT_TRUE(bounds_.sure());
    for (size_t i = 0; i < stored_.size(); ++i) {
      const float value = computed(i, -1);
      const double truth = true_value(i);
      EXPECT_LE(truth, upper_bound(key_, bounds_, bounds_.estimate(computed(i, 1)))) << i;
      if (key_.by_row) {
        const PairBounds first = with_own_error(bounds_);
        EXPECT_LE(truth, upper_bound(key_, first, first.estimate(computed(i, 1)))) << i;
      }
      EXPECT_GE(truth, lower_bound(key_, bounds_, bounds_.estimate(value))) << i;
      const double unit = key_.has_centred() ? scale_ : scale_ * query_scale_;
      EXPECT_LE(value, value_limit(key_, bounds_, reach_with_ties(key_, truth, unit))) << i;
    }
  }

  // How wide the bounds are, of the short vectors too: a proof that says nothing would pass the checks too.
  double width() const {
    double widest = 0;
    for (size_t i = 0; i < stored_.size(); ++i) {
      const double apart = upper_bound(key_, bounds_, bounds_.estimate(computed(i, 1))) -
                           lower_bound(key_, bounds_, bounds_.estimate(computed(i, -1)));
      widest = std::max(widest, apart / std::max(std::abs(true_value(i)), 1e-30));
    }
    return widest;
  }

 private:
  // As it is, where it is zero.
  static std::vector<double> at_unit_length(std::vector<double> values) {
    const double norm = std::sqrt(product(values, values));
    for (double& value : values) value = norm > 0 ? value / norm : value;
    return values;
  }
  static float above(double value) { return static_cast<float>(value * (1 + 0x1p-20)); }
  static double as_float(double value) { return static_cast<double>(static_cast<float>(value)); }
  std::vector<double> vector(size_t cols, double scale) {
    std::vector<double> values;
    for (size_t i = 0; i < cols; ++i) values.push_back(as_float(std::normal_distribution<double>(0, scale)(random_)));
    return values;
  }
  float factor(const std::vector<double>& stored) const {
    return static_cast<float>(1 / (std::sqrt(product(stored, stored)) * scale_));
  }

  // In f32, one product after the other, from the term on. `side`: 1 and -1, of the first and the second pass.
  float computed(size_t i, double side) const {
    const double square = rounded_[i].squared_norm;
    const double slack =
        row_slack(static_cast<int64_t>(query_.size()), square, rounded_[i].residual * rounded_[i].residual);
    float sum = key_.by_norm         ? static_cast<float>(term(i))
                : key_.by_row        ? static_cast<float>((square + side * slack) / 2)
                : key_.has_centred() ? static_cast<float>(rounded_[i].squared_norm / 2)
                                     : 0.0f;
    for (size_t col = 0; col < query_.size(); ++col) {
      sum += static_cast<float>(-rounded_query_.halves[col] * rounded_[i].halves[col]);
    }
    if (kind_ == KeyKind::cosine && !key_.unit) return factor(stored_[i]) * std::fma(sum, bounds_.gain, bounds_.offset);
    return sum;
  }

  // What a norm makes of a vector's term.
  double term(size_t i) const {
    double moved = 0;
    for (size_t col = 0; col < centre_.size(); ++col) moved += std::pow(stored_[i][col] - centre_[col], 2);
    return (moved + (norms_[i] - product(stored_[i], stored_[i]))) * scale_ * scale_ / 2;
  }

  // The distance, or the key of products or norms, in the scaled unit.
  double true_value(size_t i) const {
    const std::vector<double>& stored = stored_[i];
    if (kind_ == KeyKind::inner_product) return -product(query_, stored) * scale_ * query_scale_;
    if (kind_ == KeyKind::cosine && !key_.unit) {
      return 1 - product(query_, stored) / std::sqrt(product(query_, query_) * product(stored, stored));
    }
    if (key_.by_norm) {
      const double square = product(query_, query_) - 2 * product(query_, stored) + norms_[i];
      return std::max(0.0, square) * scale_ * scale_;
    }
    double sum = 0;
    for (size_t col = 0; col < query_.size(); ++col) {
      sum += (query_[col] - stored[col]) * (query_[col] - stored[col]);
    }
    return std::sqrt(sum) * scale_;
  }

  ListKey key_;
  KeyKind kind_;
  std::vector<double> norms_;
  std::mt19937 random_;
  std::vector<double> centre_;
  std::vector<double> query_;
  std::vector<std::vector<double>> stored_;
  Rounded rounded_query_;
  std::vector<Rounded> rounded_;
  double scale_ = 1;
  double query_scale_ = 1;
  PairBounds bounds_{};
};

TEST(IvfBounds, HoldForEveryMetricAndMagnitude) {
  uint32_t seed = 0;
  for (const ListKey& key : kKeys) {
    for (const size_t cols : {1u, 7u, 64u, 300u}) {
      for (const double scale : {1e-8, 1.0, 1e9}) {
        for (const double spread : {0.0, 1.0, 100.0}) {
          SCOPED_TRACE(::testing::Message() << static_cast<int>(key.kind) << (key.by_norm ? " by norm, " : ", ") << cols
                                            << " columns of " << scale << ", " << spread);
          Model(key, cols, scale, spread, ++seed).check();
          Model(key, cols, scale, spread, ++seed, 1e-4).check();
        }
      }
    }
  }
}

TEST(IvfBounds, AreNarrow) {
  for (const double spread : {1.0, 100.0}) {
    EXPECT_LT(Model(KeyKind::l2, 128, 1, spread, 1).width(), 0.003);
    EXPECT_LT(Model({KeyKind::l2, true}, 128, 1, spread, 1).width(), 0.01);
    EXPECT_LT(Model(KeyKind::cosine, 128, 1, 0, 2).width(), 0.01);
    EXPECT_LT(Model({KeyKind::cosine, false, false, true}, 128, 1, spread, 1).width(), 0.003);
    EXPECT_LT(Model({KeyKind::l2, false, true}, 128, 1, spread, 1).width(), 0.01);
  }
}

// A list's longest vectors do not make the bounds of short ones wide: of distances where they are by row, of cosine
// always.
TEST(IvfBounds, OfShortVectorsAreNarrow) {
  EXPECT_GT(Model(KeyKind::l2, 128, 1, 0, 1, 1e-4).width(), 1);
  EXPECT_LT(Model({KeyKind::l2, false, true}, 128, 1, 0, 1, 1e-4).width(), 0.02);
  EXPECT_LT(Model(KeyKind::cosine, 128, 1, 0, 2, 1e-4).width(), 0.02);
}

// Sums of lookups in f32, from a term of halves or norms on, are within their bounds.
TEST(IvfBounds, SumsOfLookupsHold) {
  std::mt19937 random(5);
  const auto draw = [&](double scale) {
    return static_cast<double>(static_cast<float>(std::normal_distribution<double>(0, scale)(random)));
  };
  for (const ListKey& key :
       {ListKey(KeyKind::l2), ListKey(KeyKind::squared_l2, true), ListKey(KeyKind::inner_product)}) {
    for (const size_t cols : {3u, 128u}) {
      for (int trial = 0; trial < 20; ++trial) {
        const size_t books = 1 + static_cast<size_t>(trial) % 15;
        std::vector<double> query, sum(cols, 0.0);
        std::vector<std::vector<double>> words(books);
        for (size_t c = 0; c < cols; ++c) query.push_back(draw(8));
        double longest = 0;
        for (auto& word : words) {
          for (size_t c = 0; c < cols; ++c) word.push_back(draw(5));
          for (size_t c = 0; c < cols; ++c) sum[c] = static_cast<double>(static_cast<float>(sum[c] + word[c]));
          longest += std::sqrt(product(word, word));
        }
        const Rounded halves = rounded(sum);
        const double square = product(sum, sum);
        const double norm = key.by_norm ? static_cast<double>(static_cast<float>(square * 1.01)) : square;
        const auto term = static_cast<float>(key.kind == KeyKind::inner_product ? 0.0
                                             : key.by_norm                      ? norm / 2
                                                                                : halves.squared_norm / 2);
        float value = term;
        for (const auto& word : words) {
          float entry = 0;
          for (size_t c = 0; c < cols; ++c) {
            entry = std::fma(static_cast<float>(query[c]), static_cast<float>(word[c]), entry);
          }
          value += -entry;
        }
        const ListMaxima list{static_cast<float>(std::sqrt(halves.squared_norm) * 1.0001),
                              static_cast<float>(halves.residual * 1.0001), 2 * std::abs(term)};
        const double query_square = product(query, query);
        const PairBounds bounds =
            sum_bounds(key, static_cast<int64_t>(cols), static_cast<int64_t>(books), list, {query_square, longest});
        ASSERT_TRUE(bounds.sure());
        const double key_value = -product(query, sum);
        const double truth = key.kind == KeyKind::inner_product ? key_value : query_square + 2 * key_value + norm;
        EXPECT_LE(std::abs(bounds.estimate(value) - truth), bounds.error) << books << " books";
        EXPECT_LT(bounds.error, 0.01 * (query_square + square));
      }
    }
  }
}

// A vector or a query without halves leaves nothing sure.
TEST(IvfBounds, SayNothingWhereNothingIsKnown) {
  for (const ListKey& kind : kKeys) {
    const ListMaxima good{4, 0.01f, 0.1f};
    const RoundedQuery query{9, 0.01, 2, 0.1};
    EXPECT_TRUE(pair_bounds(kind, 32, good, query).sure());
    for (const double bad : {static_cast<double>(INFINITY), static_cast<double>(NAN), 1e35}) {
      ListMaxima list = good;
      list.residual = static_cast<float>(bad);
      EXPECT_FALSE(pair_bounds(kind, 32, list, query).sure());
      RoundedQuery rounded = query;
      rounded.residual = bad;
      EXPECT_FALSE(pair_bounds(kind, 32, good, rounded).sure());
    }
  }
}

}  // namespace
}  // namespace kith
