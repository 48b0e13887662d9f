// The slow, obvious answers that everything else is tested against.
#pragma once

#include <kith/knn.hpp>

#include "core/ordered_key.hpp"
#include "kernels/distance/canonical.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace kith::reference {

template <typename T>
struct Matrix {
  int64_t rows = 0;
  int64_t cols = 0;
  std::vector<T> values;

  Matrix(int64_t r, int64_t c) : rows(r), cols(c), values(static_cast<size_t>(r * c)) {}
  T* row(int64_t i) { return values.data() + i * cols; }
  const T* row(int64_t i) const { return values.data() + i * cols; }
  MatrixView view() const { return {values.data(), rows, cols}; }
};

// The distance in float64, written down from its definition.
template <typename Q, typename X>
double distance(Metric metric, const Q* q, const X* x, int64_t cols) {
  double squares = 0, product = 0, qq = 0, xx = 0;
  for (int64_t i = 0; i < cols; ++i) {
    const auto a = static_cast<double>(q[i]);
    const auto b = static_cast<double>(x[i]);
    squares += (a - b) * (a - b);
    product += a * b;
    qq += a * a;
    xx += b * b;
  }
  switch (metric) {
    case Metric::l2: return std::sqrt(squares);
    case Metric::sqeuclidean: return squares;
    case Metric::inner_product: return product;
    case Metric::cosine: return qq == 0 || xx == 0 ? 1.0 : 1.0 - product / std::sqrt(qq * xx);
  }
  return 0;
}

template <typename Q, typename X>
float canonical(Metric metric, const Q* q, const X* x, int64_t cols) {
  switch (key_kind(metric)) {
    case KeyKind::inner_product: return canonical_pair<KeyKind::inner_product>(q, x, cols);
    case KeyKind::cosine: return canonical_pair<KeyKind::cosine>(q, x, cols);
    case KeyKind::l2: return canonical_pair<KeyKind::l2>(q, x, cols);
    default: return canonical_pair<KeyKind::squared_l2>(q, x, cols);
  }
}

struct Result {
  std::vector<int64_t> ids;
  std::vector<float> distances;
};

// All rows by (canonical key, row), the first k of them, padded.
template <typename Q, typename X>
Result knn(const Matrix<Q>& queries, const Matrix<X>& base, const KnnParams& params) {
  Result result;
  const float nothing = params.metric == Metric::inner_product ? -INFINITY : INFINITY;
  for (int64_t q = 0; q < queries.rows; ++q) {
    std::vector<uint64_t> all;
    for (int64_t i = 0; i < base.rows; ++i) {
      const float key = canonical(params.metric, queries.row(q), base.row(i), base.cols);
      all.push_back(pack_neighbor(ordered_key(key), static_cast<uint32_t>(i)));
    }
    std::sort(all.begin(), all.end());
    for (int64_t i = 0; i < params.k; ++i) {
      if (i >= base.rows) {
        result.ids.push_back(-1);
        result.distances.push_back(nothing);
        continue;
      }
      const uint64_t neighbor = all[static_cast<size_t>(i)];
      const float key = key_of_ordered(ordered_of(neighbor));
      result.ids.push_back(row_of(neighbor));
      result.distances.push_back(params.metric == Metric::inner_product ? 0.0f - key : key);
    }
  }
  return result;
}

}  // namespace kith::reference
