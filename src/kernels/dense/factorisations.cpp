#include "kernels/dense/factorisations.hpp"

#include <kith/error.hpp>

#include "core/divide.hpp"
#include "core/parallel_for.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

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

namespace {

// To a size of which squares are numbers. A power of two, so that nothing is rounded; returns its exponent.
int scale_to_one(double* values, int64_t count) {
  double largest = 0;
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(values[i]));
  if (largest == 0 || !std::isfinite(largest)) return 0;
  const int exponent = std::ilogb(largest);
  for (int64_t i = 0; i < count; ++i) values[i] = std::ldexp(values[i], -exponent);
  return exponent;
}

}  // namespace

namespace {

constexpr int64_t kMatrixRowsPerTask = 16;
constexpr int64_t kRotationsKept = 1 << 16;
constexpr int64_t kCacheDoubles = 1 << 16;

// Runs body(first, count) for blocks of [from, to): on this thread where there is little to do.
template <typename Body>
void for_rows(int64_t from, int64_t to, int64_t work, const Resources& resources, const Body& body) {
  constexpr int64_t kLittle = 1 << 15;
  if (work < kLittle) {
    body(from, to - from);
    return;
  }
  const int64_t tasks = divide_up(to - from, kMatrixRowsPerTask);
  ProgressMeter meter("eigenvectors", tasks, resources);
  parallel_for(tasks, meter, resources, [&](int64_t task, int) {
    const int64_t first = from + task * kMatrixRowsPerTask;
    body(first, std::min(kMatrixRowsPerTask, to - first));
  });
}

// Three diagonals, and the reflections I - beta v v' that lead to them: v_k in row k of the matrix from k + 1 on.
struct Tridiagonal {
  std::vector<double> diagonal;
  std::vector<double> beside;
  std::vector<double> betas;
};

// What a reflection takes off the matrix is taken off a row when the next reflection reads it: one pass for both.
Tridiagonal reduce(Dense& a, const Resources& resources) {
  const int64_t n = a.rows();
  const auto size = static_cast<size_t>(n);
  Tridiagonal t{std::vector<double>(size), std::vector<double>(size), std::vector<double>(size)};
  std::vector<double> products(size);
  std::vector<double> before(size);  // of the reflection before, which is still to be taken off
  bool waits = false;
  for (int64_t k = 0; k < n; ++k) {
    const auto take_off = [&](int64_t row) {
      if (!waits) return;
      const double* const v = a.row(k - 1) + k;
      add_scaled(-v[row - k], before.data(), n - k, a.row(row) + k);
      add_scaled(-before[static_cast<size_t>(row - k)], v, n - k, a.row(row) + k);
    };
    take_off(k);
    t.diagonal[static_cast<size_t>(k)] = a(k, k);
    if (k + 1 == n) break;
    double* const v = a.row(k) + k + 1;
    const int64_t count = n - k - 1;
    double beta = 0;
    if (count == 1) {
      t.beside[static_cast<size_t>(k)] = v[0];
    } else {
      const double norm = std::sqrt(dot(v, v, count));
      const double target = v[0] > 0 ? -norm : norm;
      t.beside[static_cast<size_t>(k)] = target;
      v[0] -= target;
      const double squared = dot(v, v, count);
      if (squared != 0) beta = 2 / squared;
    }
    t.betas[static_cast<size_t>(k)] = beta;
    double* const w = products.data();
    for_rows(0, count, count * count, resources, [&](int64_t first, int64_t rows) {
      for (int64_t i = first; i < first + rows; ++i) {
        take_off(k + 1 + i);
        if (beta != 0) w[i] = beta * dot(a.row(k + 1 + i) + k + 1, v, count);
      }
    });
    waits = beta != 0;
    if (!waits) continue;
    add_scaled(-0.5 * beta * dot(w, v, count), v, count, w);
    std::swap(products, before);
  }
  return t;
}

// The transpose of the reflections' product.
void accumulate(const Dense& a, const Tridiagonal& t, const Dense& z, const Resources& resources) {
  const int64_t n = a.rows();
  for_rows(0, n, n * n * n, resources, [&](int64_t first, int64_t rows) {
    for (int64_t i = first; i < first + rows; ++i) {
      std::fill_n(z.row(i), n, 0.0);
      z(i, i) = 1.0;
    }
    for (int64_t k = n - 2; k >= 0; --k) {
      const double beta = t.betas[static_cast<size_t>(k)];
      if (beta == 0) continue;
      const double* const v = a.row(k) + k + 1;
      for (int64_t i = std::max(first, k + 1); i < first + rows; ++i) {
        double* const row = z.row(i) + k + 1;
        add_scaled(-beta * dot(row, v, n - k - 1), v, n - k - 1, row);
      }
    }
  });
}

// Collects rotations of neighbouring rows and applies them when there are many.
class Rotations {
 public:
  Rotations(const Dense& z, const Resources& resources) : z_(z), resources_(resources) {
    kept_.reserve(kRotationsKept);
  }
  void add(const RowRotation& rotation) {
    kept_.push_back(rotation);
    if (static_cast<int64_t>(kept_.size()) == kRotationsKept) apply();
  }
  void apply() {
    const int64_t n = z_.cols();
    const int64_t width = std::clamp<int64_t>(kCacheDoubles / n / 32 * 32, 32, 256);
    const auto count = static_cast<int64_t>(kept_.size());
    ProgressMeter meter("eigenvectors", n, resources_);
    parallel_for(divide_up(n, width), meter, resources_, [&](int64_t task, int) {
      const int64_t first = task * width;
      rotate_rows(kept_.data(), count, z_.row(0) + first, std::min(width, n - first), n);
    });
    kept_.clear();
  }

 private:
  const Dense& z_;
  const Resources& resources_;
  std::vector<RowRotation> kept_;
};

// Implicit QL steps until nothing is left beside the diagonal.
void diagonalise(Tridiagonal& t, Rotations& rotations) {
  std::vector<double>& d = t.diagonal;
  std::vector<double>& e = t.beside;
  const auto n = static_cast<int64_t>(d.size());
  constexpr int kMostSteps = 100;  // of a value; two are common
  constexpr int kFewSteps = 30;
  const auto at = [](int64_t i) { return static_cast<size_t>(i); };
  double norm = 0;
  for (int64_t i = 0; i < n; ++i) norm = std::max(norm, std::abs(d[at(i)]) + std::abs(e[at(i)]));
  for (int64_t l = 0; l < n; ++l) {
    for (int step = 0;; ++step) {
      // If a matrix has many directions of length 0, their remainders are only rounding errors, and negligible compared
      // with the whole matrix.
      const double nothing = step < kFewSteps ? 0x1p-500 : 0x1p-53 * norm;
      int64_t m = l;
      for (; m + 1 < n; ++m) {
        const double size = std::abs(d[at(m)]) + std::abs(d[at(m + 1)]);
        if (std::abs(e[at(m)]) <= 0x1p-53 * size || std::abs(e[at(m)]) < nothing) break;
      }
      if (m == l) break;
      if (step == kMostSteps) {
        throw Error(std::isfinite(norm) ? "the eigenvalues of a matrix were not found"
                                        : "the eigenvalues of a matrix were not found: it holds a NaN or an infinity");
      }
      double g = (d[at(l + 1)] - d[at(l)]) / (2 * e[at(l)]);
      double r = std::sqrt(g * g + 1);
      g = d[at(m)] - d[at(l)] + e[at(l)] / (g + std::copysign(r, g));
      double s = 1;
      double c = 1;
      double p = 0;
      int64_t i = m - 1;
      for (; i >= l; --i) {
        const double f = s * e[at(i)];
        const double b = c * e[at(i)];
        r = std::sqrt(f * f + g * g);
        e[at(i + 1)] = r;
        if (r == 0) {
          d[at(i + 1)] -= p;
          e[at(m)] = 0;
          break;
        }
        s = f / r;
        c = g / r;
        g = d[at(i + 1)] - p;
        r = (d[at(i)] - g) * s + 2 * c * b;
        p = s * r;
        d[at(i + 1)] = g + p;
        g = c * r - b;
        rotations.add({i, c, s});
      }
      if (r == 0 && i >= l) continue;
      d[at(l)] -= p;
      e[at(l)] = g;
      e[at(m)] = 0;
    }
  }
  rotations.apply();
}

}  // namespace

SymmetricEigen symmetric_eigen(Dense& matrix, const Resources& resources) {
  const int64_t n = matrix.rows();
  const int exponent = scale_to_one(matrix.row(0), n * n);
  Tridiagonal t = reduce(matrix, resources);
  Dense z(n, n, "eigenvectors", resources);
  accumulate(matrix, t, z, resources);
  Rotations rotations(z, resources);
  diagonalise(t, rotations);
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return t.diagonal[static_cast<size_t>(a)] > t.diagonal[static_cast<size_t>(b)];
  });
  SymmetricEigen found;
  found.vectors = std::move(matrix);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t from = order[static_cast<size_t>(i)];
    found.values.push_back(std::ldexp(t.diagonal[static_cast<size_t>(from)], exponent));
    const double* const row = z.row(from);
    const auto smaller = [](double a, double b) { return std::abs(a) < std::abs(b); };
    const double sign = *std::max_element(row, row + n, smaller) < 0 ? -1.0 : 1.0;
    std::transform(row, row + n, found.vectors.row(i), [&](double value) { return sign * value; });
  }
  return found;
}

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

}  // namespace

Dense orthonormal_rows(Dense& matrix, const Resources& resources) {
  const int64_t rows = matrix.rows();
  const int64_t cols = matrix.cols();
  std::vector<Reflection> reflections(static_cast<size_t>(rows));
  const auto reflection = [&](int64_t k) -> Reflection& { return reflections[static_cast<size_t>(k)]; };
  for (int64_t i = 0; i < rows; ++i) scale_to_one(matrix.row(i), cols);
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

}  // namespace kith
