#include "kernels/dense/orthonormal_rows.hpp"

#include "core/divide.hpp"
#include "core/parallel_for.hpp"
#include "kernels/dense/dense.hpp"
#include "kernels/dense/symmetric_eigen.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kAtATime = 32;  // reflections
constexpr int64_t kRowsATask = 16;

// I - beta v v', with v from column `first` on.
struct Reflection {
  int64_t first = 0;
  double beta = 0;
  double sign = 1;
};

void reflect(const Reflection& reflection, const double* v, int64_t cols, double* row) {
  if (reflection.beta == 0) return;
  const int64_t count = cols - reflection.first;
  double* const at = row + reflection.first;
  add_scaled(-reflection.beta * dot(at, v + reflection.first, count), v + reflection.first, count, at);
}

// Turns the row, from column `first` on, into the v that sends it to the first of these columns.
Reflection reflection_of(double* row, int64_t first, int64_t cols) {
  Reflection found{first, 0, 1};
  double* const v = row + first;
  const int64_t count = cols - first;
  const double squared = dot(v, v, count);
  if (squared == 0) return found;
  const double norm = std::sqrt(squared);
  found.sign = v[0] > 0 ? -1.0 : 1.0;
  v[0] -= found.sign * norm;
  const double length = dot(v, v, count);
  if (length > 0) found.beta = 2 / length;
  return found;
}

// To a size of which squares are numbers.
void scale_row(double* row, int64_t cols) {
  double largest = 0;
  for (int64_t c = 0; c < cols; ++c) largest = std::max(largest, std::abs(row[c]));
  if (largest == 0 || !std::isfinite(largest)) return;
  const int exponent = std::ilogb(largest);
  for (int64_t c = 0; c < cols; ++c) row[c] = std::ldexp(row[c], -exponent);
}

}  // namespace

Dense orthonormal_rows(Dense& matrix, const Resources& resources) {
  const int64_t rows = matrix.rows();
  const int64_t cols = matrix.cols();
  std::vector<Reflection> reflections(static_cast<size_t>(rows));
  const auto reflection = [&](int64_t k) -> Reflection& { return reflections[static_cast<size_t>(k)]; };
  for (int64_t i = 0; i < rows; ++i) scale_row(matrix.row(i), cols);
  for (int64_t first = 0; first < rows; first += kAtATime) {
    const int64_t end = std::min(first + kAtATime, rows);
    for (int64_t k = first; k < end; ++k) {
      reflection(k) = reflection_of(matrix.row(k), k, cols);
      for (int64_t i = k + 1; i < end; ++i) reflect(reflection(k), matrix.row(k), cols, matrix.row(i));
    }
    const int64_t tasks = divide_up(rows - end, kRowsATask);
    ProgressMeter meter("orthonormal rows", tasks, resources);
    parallel_for(tasks, meter, resources, [&](int64_t task, int) {
      const int64_t from = end + task * kRowsATask;
      for (int64_t i = from; i < std::min(from + kRowsATask, rows); ++i) {
        for (int64_t k = first; k < end; ++k) reflect(reflection(k), matrix.row(k), cols, matrix.row(i));
      }
    });
  }
  Dense result(rows, cols, "orthonormal rows", resources);
  const int64_t tasks = divide_up(rows, kRowsATask);
  ProgressMeter meter("orthonormal rows", tasks, resources);
  parallel_for(tasks, meter, resources, [&](int64_t task, int) {
    const int64_t from = task * kRowsATask;
    const int64_t end = std::min(from + kRowsATask, rows);
    for (int64_t i = from; i < end; ++i) result(i, i) = reflection(i).sign;
    for (int64_t k = end - 1; k >= 0; --k) {  // later ones leave these rows as they are
      for (int64_t i = std::max(from, k); i < end; ++i) reflect(reflection(k), matrix.row(k), cols, result.row(i));
    }
  });
  return result;
}

Dense polar_factor(DenseView<const double> m, const Resources& resources) {
  const bool tall = m.rows > m.cols;
  const DenseView<const double> wide = tall ? m.transposed() : m;  // rows <= cols
  Dense squares(wide.rows, wide.rows, "a polar factor", resources);
  multiply(wide, wide.transposed(), squares.view(), {.symmetric = true}, resources);
  const SymmetricEigen left = symmetric_eigen(squares, resources);  // one in each row
  Dense scaled(wide.rows, wide.cols, "a polar factor", resources);
  multiply(left.vectors.read(), wide, scaled.view(), {}, resources);
  const Dense right = orthonormal_rows(scaled, resources);
  Dense result(m.rows, m.cols, "a polar factor", resources);
  if (tall) {
    multiply(right.read().transposed(), left.vectors.read(), result.view(), {}, resources);
  } else {
    multiply(left.vectors.read().transposed(), right.read(), result.view(), {}, resources);
  }
  return result;
}

Footprint polar_factor_footprint(int64_t rows, int64_t cols, const Resources& resources) {
  const int64_t least = std::min(rows, cols);
  const int64_t most = std::max(rows, cols);
  const Footprint square = array_footprint<double>(least, least);
  const Footprint matrix = array_footprint<double>(rows, cols);
  return square.beside(product_footprint<double>(least, least, most, resources)
                           .then(square)
                           .then(matrix.beside(product_footprint<double>(least, most, least, resources)))
                           .then(matrix.times(3).beside(product_footprint<double>(rows, cols, least, resources))));
}

}  // namespace kith
