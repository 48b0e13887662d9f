#include "kernels/dense/symmetric_eigen.hpp"

#include <kith/error.hpp>

#include "core/divide.hpp"
#include "core/parallel_for.hpp"
#include "kernels/dense/dense.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kith {
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

Tridiagonal reduce(Dense& a, const Resources& resources) {
  const int64_t n = a.rows();
  const auto size = static_cast<size_t>(n);
  Tridiagonal t{std::vector<double>(size), std::vector<double>(size), std::vector<double>(size)};
  std::vector<double> products(size);
  for (int64_t k = 0; k < n; ++k) {
    t.diagonal[static_cast<size_t>(k)] = a(k, k);
    if (k + 1 == n) break;
    double* const v = a.row(k) + k + 1;
    const int64_t count = n - k - 1;
    if (count == 1) {
      t.beside[static_cast<size_t>(k)] = v[0];
      continue;
    }
    const double norm = std::sqrt(dot(v, v, count));
    const double target = v[0] > 0 ? -norm : norm;
    t.beside[static_cast<size_t>(k)] = target;
    v[0] -= target;
    const double squared = dot(v, v, count);
    if (squared == 0) continue;  // beta stays 0
    const double beta = 2 / squared;
    t.betas[static_cast<size_t>(k)] = beta;
    double* const w = products.data();
    for_rows(0, count, count * count, resources, [&](int64_t first, int64_t rows) {
      for (int64_t i = first; i < first + rows; ++i) w[i] = beta * dot(a.row(k + 1 + i) + k + 1, v, count);
    });
    add_scaled(-0.5 * beta * dot(w, v, count), v, count, w);
    for_rows(0, count, count * count, resources, [&](int64_t first, int64_t rows) {
      for (int64_t i = first; i < first + rows; ++i) {
        double* const row = a.row(k + 1 + i) + k + 1;
        add_scaled(-v[i], w, count, row);
        add_scaled(-w[i], v, count, row);
      }
    });
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
    const int64_t width = std::clamp<int64_t>(kCacheDoubles / n / 8 * 8, 16, 256);
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
      // Where a matrix has many directions of no length, what is left of them is rounding beside rounding: it counts as
      // nothing beside the whole matrix.
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

// To a size of which squares are numbers. A power of two, so that nothing is rounded.
int scale_to_one(const Dense& a) {
  double largest = 0;
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t j = 0; j < a.cols(); ++j) largest = std::max(largest, std::abs(a(i, j)));
  }
  if (largest == 0 || !std::isfinite(largest)) return 0;
  const int exponent = std::ilogb(largest);
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t j = 0; j < a.cols(); ++j) a(i, j) = std::ldexp(a(i, j), -exponent);
  }
  return exponent;
}

}  // namespace

SymmetricEigen symmetric_eigen(Dense& matrix, const Resources& resources) {
  const int64_t n = matrix.rows();
  const int exponent = scale_to_one(matrix);
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

}  // namespace kith
