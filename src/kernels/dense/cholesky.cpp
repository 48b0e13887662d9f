#include "kernels/dense/cholesky.hpp"

#include "core/divide.hpp"
#include "core/parallel_for.hpp"
#include "kernels/dense/dense.hpp"

#include <algorithm>
#include <cmath>

namespace kith {
namespace {

constexpr int64_t kBlock = 96;
constexpr int64_t kRowsPerTask = 32;

// The rest of a row of L by the rows of a factored block: row[c] for the block's columns.
void solve_row(DenseView<const double> block, double* row) {
  for (int64_t c = 0; c < block.rows; ++c) row[c] = (row[c] - dot(row, block.row(c), c)) / block(c, c);
}

void factor_block(DenseView<double> block, double least) {
  for (int64_t i = 0; i < block.rows; ++i) {
    double* const row = block.row(i);
    for (int64_t c = 0; c < i; ++c) row[c] = (row[c] - dot(row, block.row(c), c)) / block(c, c);
    row[i] = std::sqrt(std::max(row[i] - dot(row, row, i), least));
  }
}

void factor(DenseView<double> a, double least, const Resources& resources) {
  for (int64_t first = 0; first < a.rows; first += kBlock) {
    const int64_t size = std::min(kBlock, a.rows - first);
    const DenseView<double> block = a.block(first, first, size, size);
    factor_block(block, least);
    const int64_t behind = first + size;
    const int64_t left = a.rows - behind;
    if (left == 0) break;
    ProgressMeter meter("factor", left, resources);
    parallel_for(divide_up(left, kRowsPerTask), meter, resources, [&](int64_t task, int) {
      for (int64_t i = task * kRowsPerTask; i < std::min((task + 1) * kRowsPerTask, left); ++i) {
        solve_row(block, a.row(behind + i) + first);
      }
    });
    const DenseView<const double> panel = a.block(behind, first, left, size);
    multiply(panel, panel.transposed(), a.block(behind, behind, left, left), {-1.0, true, true}, resources);
  }
}

}  // namespace

void solve_positive_definite(DenseView<double> a, DenseView<double> b, double least, const Resources& resources) {
  const Resources quiet = resources.with_progress({});
  factor(a, least, quiet);
  const int64_t rows = a.rows;
  // L Y = B
  for (int64_t first = 0; first < rows; first += kBlock) {
    const int64_t behind = std::min(first + kBlock, rows);
    for (int64_t i = first; i < behind; ++i) {
      for (int64_t j = first; j < i; ++j) add_scaled(-a(i, j), b.row(j), b.cols, b.row(i));
      for (int64_t c = 0; c < b.cols; ++c) b(i, c) /= a(i, i);
    }
    if (behind == rows) break;
    multiply(a.block(behind, first, rows - behind, behind - first), b.block(first, 0, behind - first, b.cols),
             b.block(behind, 0, rows - behind, b.cols), {-1.0, true, false}, quiet);
  }
  // L^T X = Y
  for (int64_t block = divide_up(rows, kBlock) - 1; block >= 0; --block) {
    const int64_t first = block * kBlock;
    const int64_t behind = std::min(first + kBlock, rows);
    for (int64_t i = behind - 1; i >= first; --i) {
      for (int64_t j = i + 1; j < behind; ++j) add_scaled(-a(j, i), b.row(j), b.cols, b.row(i));
      for (int64_t c = 0; c < b.cols; ++c) b(i, c) /= a(i, i);
    }
    if (first == 0) break;
    const DenseView<const double> factors = a.block(first, 0, behind - first, first);
    multiply(factors.transposed(), b.block(first, 0, behind - first, b.cols), b.block(0, 0, first, b.cols),
             {-1.0, true, false}, quiet);
  }
}

}  // namespace kith
