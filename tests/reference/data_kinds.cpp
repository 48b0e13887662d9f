#include "reference/data_kinds.hpp"

#include "core/random.hpp"
#include "reference/data.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>

namespace kith::reference {
namespace {

constexpr int64_t kCols = 24;

double uniform(const CounterRng& rng, uint64_t index) { return double{rng.uniform(index)}; }

// value(row, column, number), where `number` is different for each.
template <typename Value>
Matrix<float> each(int64_t rows, int64_t cols, const Value& value) {
  Matrix<float> x(rows, cols);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t c = 0; c < cols; ++c)
      x.row(i)[c] = static_cast<float>(value(i, c, static_cast<uint64_t>(i * cols + c)));
  }
  return x;
}

Matrix<float> normal(int64_t rows, int64_t cols, uint64_t seed) {
  const CounterRng rng(seed, 1);
  return each(rows, cols, [&](int64_t, int64_t, uint64_t at) { return gaussian(rng, at); });
}

Matrix<float> uniform_rows(int64_t rows, int64_t cols, uint64_t seed) {
  const CounterRng rng(seed, 2);
  return each(rows, cols, [&](int64_t, int64_t, uint64_t at) { return uniform(rng, at); });
}

// `zipf`: the sizes of clusters fall as 1 / rank; else all are as large.
Matrix<float> clusters(int64_t rows, int64_t count, double spread, uint64_t seed, bool zipf = false) {
  const Matrix<float> centres = normal(count, kCols, seed + 1);
  const CounterRng rng(seed, 3);
  Matrix<float> x = normal(rows, kCols, seed);
  for (int64_t i = 0; i < rows; ++i) {
    const double drawn = uniform(rng, static_cast<uint64_t>(i));
    const double place =
        zipf ? std::pow(static_cast<double>(count) + 1, drawn) - 1 : drawn * static_cast<double>(count);
    const auto cluster = std::min(static_cast<int64_t>(place), count - 1);
    for (int64_t c = 0; c < kCols; ++c) {
      x.row(i)[c] = centres.row(cluster)[c] + static_cast<float>(spread) * x.row(i)[c];
    }
  }
  return x;
}

Matrix<float> scaled(Matrix<float> x, const std::function<double(int64_t)>& scale) {
  for (int64_t i = 0; i < x.rows; ++i) {
    const auto factor = static_cast<float>(scale(i));
    for (int64_t c = 0; c < x.cols; ++c) x.row(i)[c] *= factor;
  }
  return x;
}

Matrix<float> repeated(Matrix<float> x, const std::function<int64_t(int64_t)>& of) {
  for (int64_t i = 0; i < x.rows; ++i) std::copy_n(x.row(of(i)), x.cols, x.row(i));
  return x;
}

Matrix<float> low_rank(int64_t rows, int64_t cols, uint64_t seed) {
  constexpr int64_t kRank = 6;
  const Matrix<float> directions = normal(kRank, cols, seed + 1);
  const Matrix<float> places = normal(rows, kRank, seed + 2);
  Matrix<float> x = normal(rows, cols, seed);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t c = 0; c < cols; ++c) {
      float sum = 0.05f * x.row(i)[c];
      for (int64_t r = 0; r < kRank; ++r) sum += places.row(i)[r] * directions.row(r)[c];
      x.row(i)[c] = sum;
    }
  }
  return x;
}

Matrix<float> random_walk(int64_t rows, uint64_t seed) {
  Matrix<float> x = normal(rows, kCols, seed);
  for (int64_t i = 1; i < rows; ++i) {
    for (int64_t c = 0; c < kCols; ++c) x.row(i)[c] += x.row(i - 1)[c];
  }
  return x;
}

Matrix<float> hubs(int64_t rows, uint64_t seed) {
  const Matrix<float> x = normal(rows, kCols, seed);
  return scaled(x, [&](int64_t i) {
    double squares = 0;
    for (int64_t c = 0; c < kCols; ++c) squares += double{x.row(i)[c]} * x.row(i)[c];
    return (i % 1000 == 0 ? 0.1 : 1) / std::sqrt(squares);
  });
}

}  // namespace

const std::vector<DataKind>& data_kinds() {
  static const std::vector<DataKind> kKinds{{"uniform"},
                                            {"normal"},
                                            {"clusters_10"},
                                            {"clusters_100"},
                                            {"clusters_20000"},
                                            {"zipf_clusters"},
                                            {"far_outliers"},
                                            {"distinct_1000"},
                                            {"half_equal"},
                                            {"lattice"},
                                            {"sparse", Metric::cosine},
                                            {"lognormal"},
                                            {"four_decades"},
                                            {"random_walk"},
                                            {"low_rank_24"},
                                            {"low_rank_64"},
                                            {"hubs"},
                                            {"line"},
                                            {"columns_1"},
                                            {"columns_2"},
                                            {"columns_4"}};
  return kKinds;
}

Matrix<float> make_kind(std::string_view name, int64_t rows, uint64_t seed) {
  const CounterRng rng(seed, 4);
  const auto drawn = [&](int64_t i) { return uniform(rng, static_cast<uint64_t>(i)); };
  if (name == "uniform") return uniform_rows(rows, kCols, seed);
  if (name == "normal") return normal(rows, kCols, seed);
  if (name == "clusters_10") return clusters(rows, 10, 0.01, seed);
  if (name == "clusters_100") return clusters(rows, 100, 0.01, seed);
  if (name == "clusters_20000") return clusters(rows, 20000, 0.01, seed);
  if (name == "zipf_clusters") return clusters(rows, 500, 0.1, seed, true);
  if (name == "far_outliers") {
    return scaled(clusters(rows, 200, 0.3, seed), [](int64_t i) { return i % 1000 == 7 ? 1000 : 1; });
  }
  if (name == "distinct_1000") return repeated(normal(rows, kCols, seed), [](int64_t i) { return i % 1000; });
  if (name == "half_equal") {
    return repeated(clusters(rows, 200, 0.3, seed), [](int64_t i) { return i % 2 == 0 ? 0 : i; });
  }
  if (name == "lattice") {
    return each(rows, 8, [&](int64_t, int64_t, uint64_t at) { return std::floor(4 * uniform(rng, at)); });
  }
  if (name == "sparse") {
    return each(rows, 64, [&](int64_t, int64_t, uint64_t at) { return uniform(rng, at) < 0.06 ? 1 : 0; });
  }
  if (name == "lognormal") {
    return each(rows, kCols, [&](int64_t, int64_t, uint64_t at) { return std::exp(gaussian(rng, at)); });
  }
  if (name == "four_decades") {
    return scaled(clusters(rows, 200, 0.3, seed), [&](int64_t i) { return std::pow(10, 4 * drawn(i) - 2); });
  }
  if (name == "random_walk") return random_walk(rows, seed);
  if (name == "low_rank_24") return low_rank(rows, 24, seed);
  if (name == "low_rank_64") return low_rank(rows, 64, seed);
  if (name == "hubs") return hubs(rows, seed);
  if (name == "line") return each(rows, 8, [&](int64_t i, int64_t c, uint64_t) { return drawn(i) * double(c + 1); });
  if (name == "columns_1") return uniform_rows(rows, 1, seed);
  if (name == "columns_2") return uniform_rows(rows, 2, seed);
  if (name == "columns_4") return uniform_rows(rows, 4, seed);
  throw std::invalid_argument("no kind of data is called " + std::string(name));
}

}  // namespace kith::reference
