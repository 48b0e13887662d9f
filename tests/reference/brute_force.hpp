// The slow, obvious answers that everything else is tested against.
#pragma once

#include <kith/knn.hpp>
#include <kith/range_search.hpp>

#include "core/half.hpp"
#include "core/ordered_key.hpp"
#include "kernels/distance/canonical.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace kith::reference {

template <typename T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, Half>) return DType::f16;
  if constexpr (std::is_same_v<T, BFloat16>) return DType::bf16;
  if constexpr (std::is_same_v<T, uint8_t>) return DType::u8;
  if constexpr (std::is_same_v<T, int8_t>) return DType::i8;
  return DType::f32;
}

template <typename T>
struct Matrix {
  int64_t rows = 0;
  int64_t cols = 0;
  std::vector<T> values;

  Matrix(int64_t r, int64_t c) : rows(r), cols(c), values(static_cast<size_t>(r * c)) {}
  T* row(int64_t i) { return values.data() + i * cols; }
  const T* row(int64_t i) const { return values.data() + i * cols; }
  MatrixView view() const { return {values.data(), dtype_of<T>(), {rows, cols, cols}}; }
};

// The distance in float64, written down from its definition.
template <typename Q, typename X>
double distance(Metric metric, const Q* q, const X* x, int64_t cols) {
  double squares = 0, product = 0, qq = 0, xx = 0, absolute = 0, largest = 0, chi = 0, bits = 0;
  for (int64_t i = 0; i < cols; ++i) {
    const auto a = static_cast<double>(q[i]);
    const auto b = static_cast<double>(x[i]);
    squares += (a - b) * (a - b);
    product += a * b;
    qq += a * a;
    xx += b * b;
    absolute += std::abs(a - b);
    largest = std::max(largest, std::abs(a - b));
    if (a + b != 0) chi += (a - b) * (a - b) / (a + b);
    if (metric == Metric::hamming)
      bits += std::popcount(static_cast<unsigned>(static_cast<int>(a) ^ static_cast<int>(b)));
  }
  switch (metric) {
    case Metric::l2: return std::sqrt(squares);
    case Metric::sqeuclidean: return squares;
    case Metric::inner_product: return product;
    case Metric::cosine: return qq == 0 || xx == 0 ? 1.0 : 1.0 - product / std::sqrt(qq * xx);
    case Metric::l1: return absolute;
    case Metric::linf: return largest;
    case Metric::chi_square: return chi;
    case Metric::hamming: return bits;
  }
  return 0;
}

template <typename Q, typename X>
float canonical(Metric metric, const Q* q, const X* x, int64_t cols) {
  return visit_kind(key_kind(metric), [&](auto tag) { return canonical_pair<tag.kind>(q, x, cols); });
}

// The rows that a filter keeps, ascending.
inline std::vector<uint32_t> kept_rows(const RowFilter& filter, int64_t rows) {
  std::vector<uint32_t> kept;
  for (int64_t i = 0; i < rows; ++i) {
    bool keep = true;
    const auto* bytes = static_cast<const uint8_t*>(filter.data());
    if (filter.form() == RowFilter::Form::mask) keep = bytes[i] != 0;
    if (filter.form() == RowFilter::Form::bits) keep = bytes[i / 8] >> (i % 8) & 1;
    if (filter.form() == RowFilter::Form::rows) {
      const auto* listed = static_cast<const int64_t*>(filter.data());
      keep = std::find(listed, listed + filter.size(), i) != listed + filter.size();
    }
    if (keep) kept.push_back(static_cast<uint32_t>(i));
  }
  return kept;
}

struct Result {
  std::vector<int64_t> ids;
  std::vector<float> distances;
};

// All rows by (canonical key, row), the first k of them, padded.
template <typename Q, typename X>
Result knn(const Matrix<Q>& queries, const Matrix<X>& base, const KnnParams& params) {
  Result result;
  const std::vector<uint32_t> rows = kept_rows(params.filter, base.rows);
  const float nothing = params.metric == Metric::inner_product ? -INFINITY : INFINITY;
  for (int64_t q = 0; q < queries.rows; ++q) {
    std::vector<uint64_t> all;
    for (const uint32_t i : rows) {
      const float key = canonical(params.metric, queries.row(q), base.row(i), base.cols);
      all.push_back(pack_neighbor(ordered_key(key), i));
    }
    std::sort(all.begin(), all.end());
    for (int64_t i = 0; i < params.k; ++i) {
      if (i >= static_cast<int64_t>(rows.size())) {
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

struct RangeResult {
  std::vector<int64_t> offsets;
  std::vector<int64_t> ids;
  std::vector<float> distances;
};

// All rows within the radius, by (canonical key, row).
template <typename Q, typename X>
RangeResult range_search(const Matrix<Q>& queries, const Matrix<X>& base, const RangeParams& params) {
  const Result all = knn(queries, base, {base.rows, params.metric, params.check_finite, params.filter});
  RangeResult result;
  result.offsets.push_back(0);
  for (int64_t i = 0; i < queries.rows * base.rows; ++i) {
    const auto at = static_cast<size_t>(i);
    const float distance = all.distances[at];
    const bool inside = params.metric == Metric::inner_product ? distance >= params.radius : distance <= params.radius;
    if (inside && all.ids[at] >= 0) {
      result.ids.push_back(all.ids[at]);
      result.distances.push_back(distance);
    }
    if ((i + 1) % base.rows == 0) result.offsets.push_back(static_cast<int64_t>(result.ids.size()));
  }
  return result;
}

}  // namespace kith::reference
