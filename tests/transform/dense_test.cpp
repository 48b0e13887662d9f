// The linear algebra of training, against the definitions: products, orthonormal rows, eigenvectors.
#include "kernels/dense/dense.hpp"
#include "core/random.hpp"
#include "kernels/dense/factorisations.hpp"
#include "kernels/forced_target.hpp"
#include "transform/random_rotation.hpp"
#include "transform/trained.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace kith {
namespace {

Dense random_dense(int64_t rows, int64_t cols, uint64_t seed, const Resources& resources) {
  Dense m(rows, cols, "test", resources);
  const CounterRng rng(seed, 1);
  for (int64_t i = 0; i < rows * cols; ++i) m.row(0)[i] = normal_pair(rng, static_cast<uint64_t>(i)).first;
  return m;
}

std::vector<double> values_of(const Dense& m) { return {m.row(0), m.row(0) + m.rows() * m.cols()}; }

// The largest departure of M M' from the identity.
double departure(const Dense& m, const Resources& resources) {
  const Dense products(m.rows(), m.rows(), "test", resources);
  multiply(m.read(), m.read().transposed(), products.view(), {}, resources);
  double most = 0;
  for (int64_t i = 0; i < m.rows(); ++i) {
    for (int64_t j = 0; j < m.rows(); ++j) most = std::max(most, std::abs(products(i, j) - (i == j ? 1.0 : 0.0)));
  }
  return most;
}

TEST(DenseProduct, IsTheSumOfProducts) {
  const Resources resources = cpu_only(2);
  for (const auto& [rows, depth, cols] :
       {std::array<int64_t, 3>{1, 1, 1}, {5, 3, 7}, {97, 300, 193}, {6, 9000, 33}, {130, 0, 2}, {200, 257, 50}}) {
    const Dense a = random_dense(rows, depth, 1, resources);
    const Dense b = random_dense(cols, depth, 2, resources);
    const Dense c = random_dense(rows, cols, 3, resources);
    const std::vector<double> before = values_of(c);
    multiply(a.read(), b.read().transposed(), c.view(), {.scale = 0.5, .adds = true}, resources);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < cols; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < depth; ++k) sum += a(i, k) * b(j, k);
        ASSERT_NEAR(c(i, j), before[static_cast<size_t>(i * cols + j)] + 0.5 * sum, 1e-10) << rows << " " << depth;
      }
    }
  }
}

TEST(DenseProduct, HalfOfASymmetricOneIsEnough) {
  const Resources resources = cpu_only(2);
  for (const int64_t n : {3, 100, 400}) {
    const Dense a = random_dense(n, 50, 1, resources);
    const Dense whole(n, n, "test", resources);
    const Dense half(n, n, "test", resources);
    multiply(a.read(), a.read().transposed(), whole.view(), {}, resources);
    multiply(a.read(), a.read().transposed(), half.view(), {.symmetric = true}, resources);
    EXPECT_EQ(values_of(whole), values_of(half));
  }
}

TEST(DenseProduct, HasTheSameBitsForAnyThreadsAndInstructionSet) {
  const Dense a = random_dense(40, 4500, 1, cpu_only(1));
  const Dense b = random_dense(4500, 21, 2, cpu_only(1));
  const auto product = [&](int threads) {
    const Resources resources = cpu_only(threads);
    const Dense c(40, 21, "test", resources);
    multiply(a.read(), b.read(), c.view(), {}, resources);
    return values_of(c);
  };
  const std::vector<double> expected = product(1);
  const double expected_dot = dot(a.row(0), a.row(1), 4499);
  for (const std::string& target : targets_for_next_case()) {
    const ForcedTarget forced(target);
    EXPECT_EQ(product(3), expected) << target;
    EXPECT_EQ(dot(a.row(0), a.row(1), 4499), expected_dot) << target;
  }
}

TEST(OrthonormalRows, SpanWhatTheRowsSpan) {
  const Resources resources = cpu_only(2);
  for (const auto& [rows, cols] : {std::array<int64_t, 2>{1, 1}, {1, 5}, {7, 7}, {40, 90}, {100, 100}}) {
    const Dense original = random_dense(rows, cols, 4, resources);
    Dense used = random_dense(rows, cols, 4, resources);
    const Dense q = orthonormal_rows(used, resources);
    EXPECT_LT(departure(q, resources), 1e-13);
    // Row i has no part beyond the first i + 1 of the result, and a positive one along its own.
    const Dense parts(rows, rows, "test", resources);
    multiply(original.read(), q.read().transposed(), parts.view(), {}, resources);
    for (int64_t i = 0; i < rows; ++i) {
      EXPECT_GT(parts(i, i), 0);
      double squared = 0;
      for (int64_t j = 0; j <= i; ++j) squared += parts(i, j) * parts(i, j);
      EXPECT_NEAR(squared, dot(original.row(i), original.row(i), cols), 1e-9);
    }
  }
}

TEST(OrthonormalRows, FillUpWhatDependentRowsLack) {
  const Resources resources = cpu_only(1);
  Dense m(6, 9, "test", resources);
  for (int64_t j = 0; j < 9; ++j) {
    m(0, j) = 1e200;
    m(1, j) = 1e-200;
    m(3, j) = static_cast<double>(j);
    m(4, j) = 2.0 * static_cast<double>(j);  // rows 2 and 5 are zero
  }
  EXPECT_LT(departure(orthonormal_rows(m, resources), resources), 1e-13);
}

void check_eigen(const Dense& original, const Resources& resources) {
  const int64_t n = original.rows();
  Dense used(n, n, "test", resources);
  double largest = 0;
  for (int64_t i = 0; i < n * n; ++i) {
    used.row(0)[i] = original.row(0)[i];
    largest = std::max(largest, std::abs(original.row(0)[i]));
  }
  const SymmetricEigen found = symmetric_eigen(used, resources);
  EXPECT_LT(departure(found.vectors, resources), 1e-12 * static_cast<double>(n));
  for (int64_t i = 0; i < n; ++i) {
    const double value = found.values[static_cast<size_t>(i)];
    EXPECT_GE(found.values[static_cast<size_t>(std::max<int64_t>(i - 1, 0))], value);
    for (int64_t j = 0; j < n; ++j) {
      EXPECT_NEAR(dot(original.row(j), found.vectors.row(i), n), value * found.vectors(i, j),
                  1e-13 * largest * static_cast<double>(n));
    }
  }
}

TEST(SymmetricEigen, SatisfiesItsDefinition) {
  const Resources resources = cpu_only(2);
  for (const int64_t n : {1, 2, 3, 16, 61, 200}) {
    const Dense a = random_dense(n, n + 3, 7, resources);
    const Dense squared(n, n, "test", resources);
    for (const double scale : {1.0, 1e60, 1e-60}) {
      multiply(a.read(), a.read().transposed(), squared.view(), {.scale = scale, .symmetric = true}, resources);
      check_eigen(squared, resources);
    }
  }
}

TEST(SymmetricEigen, TakesRepeatedAndMissingValues) {
  const Resources resources = cpu_only(1);
  check_eigen(Dense(20, 20, "test", resources), resources);  // all zero
  const Dense ones(30, 30, "test", resources);
  for (int64_t i = 0; i < 900; ++i) ones.row(0)[i] = 1;  // one direction alone
  check_eigen(ones, resources);
  const Dense blocks(24, 24, "test", resources);
  for (int64_t i = 0; i < 24; ++i) blocks(i, i) = static_cast<double>(i % 3);
  check_eigen(blocks, resources);
  const Dense flat = random_dense(50, 4, 9, resources);  // fewer directions than rows
  const Dense squared(50, 50, "test", resources);
  multiply(flat.read(), flat.read().transposed(), squared.view(), {}, resources);
  check_eigen(squared, resources);
}

// Directions of no length leave rounding alone, of which no part is small beside its neighbours.
TEST(SymmetricEigen, TakesManyDirectionsOfNoLength) {
  const Resources resources = cpu_only(2);
  for (const int64_t rank : {1, 30, 50, 90}) {
    const Dense flat = random_dense(240, rank, 11, resources);
    const Dense squared(240, 240, "test", resources);
    multiply(flat.read(), flat.read().transposed(), squared.view(), {}, resources);
    check_eigen(squared, resources);
  }
}

TEST(SymmetricEigen, HasTheSameBitsForAnyThreadsAndInstructionSet) {
  const auto vectors = [](int threads) {
    const Resources resources = cpu_only(threads);
    const Dense a = random_dense(110, 110, 5, resources);
    Dense squared(110, 110, "test", resources);
    multiply(a.read(), a.read().transposed(), squared.view(), {}, resources);
    return values_of(symmetric_eigen(squared, resources).vectors);
  };
  const std::vector<double> expected = vectors(1);
  for (const std::string& target : targets_for_next_case()) {
    const ForcedTarget forced(target);
    EXPECT_EQ(vectors(3), expected) << target;
  }
}

TEST(RandomRotation, IsOrthonormalAndNormalNumbersAreNormal) {
  const Resources resources = cpu_only(2);
  EXPECT_LT(departure(random_rotation(64, 64, 1, resources), resources), 1e-13);
  EXPECT_LT(departure(random_rotation(64, 9, 1, resources), resources), 1e-13);
  EXPECT_NE(values_of(random_rotation(8, 8, 1, resources)), values_of(random_rotation(8, 8, 2, resources)));
  const Dense longer = random_rotation(9, 64, 1, resources);
  Dense transposed(9, 64, "test", resources);
  for (int64_t i = 0; i < 9; ++i) {
    for (int64_t j = 0; j < 64; ++j) transposed(i, j) = longer(j, i);
  }
  EXPECT_LT(departure(transposed, resources), 1e-13);
  double sums[5] = {};
  constexpr int kPairs = 20'000;
  for (uint64_t i = 0; i < kPairs; ++i) {
    const NormalPair pair = normal_pair(CounterRng(3, 4), i);
    for (const double x : {pair.first, pair.second}) {
      for (int power = 1; power <= 4; ++power) sums[power] += std::pow(x, power) / (2 * kPairs);
    }
  }
  EXPECT_NEAR(sums[1], 0, 0.03);
  EXPECT_NEAR(sums[2], 1, 0.04);
  EXPECT_NEAR(sums[3], 0, 0.1);
  EXPECT_NEAR(sums[4], 3, 0.2);
}

}  // namespace
}  // namespace kith
