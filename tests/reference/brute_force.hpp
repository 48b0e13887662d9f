// The slow, obvious answers that everything else is tested against.
#pragma once

#include <kith/knn.hpp>
#include <kith/range_search.hpp>

#include "core/half.hpp"
#include "core/ordered_key.hpp"
#include "kernels/distance/canonical.hpp"
#include "reference/pair_distance.hpp"

#include <algorithm>
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

// The values of any dtype as f32, which holds them all: what is compared is compiled for floats alone.
template <typename T>
Matrix<float> widened(const Matrix<T>& m) {
  Matrix<float> floats(m.rows, m.cols);
  for (size_t i = 0; i < m.values.size(); ++i) floats.values[i] = static_cast<float>(m.values[i]);
  return floats;
}
inline const Matrix<float>& widened(const Matrix<float>& m) { return m; }

template <typename Q, typename X>
double distance(Metric metric, const Q* q, const X* x, int64_t cols) {
  return distance(metric, std::vector<float>(q, q + cols).data(), std::vector<float>(x, x + cols).data(), cols);
}

template <typename Q, typename X>
float canonical(Metric metric, const Q* q, const X* x, int64_t cols) {
  return canonical(metric, std::vector<float>(q, q + cols).data(), std::vector<float>(x, x + cols).data(), cols);
}

// The rows that a filter keeps, ascending.
std::vector<uint32_t> kept_rows(const RowFilter& filter, int64_t rows);

struct Result {
  std::vector<int64_t> ids;
  std::vector<float> distances;
};

// All rows by (canonical key, row), the first k of them, padded.
Result knn_of_floats(const Matrix<float>& queries, const Matrix<float>& base, const KnnParams& params);

template <typename Q, typename X>
Result knn(const Matrix<Q>& queries, const Matrix<X>& base, const KnnParams& params) {
  return knn_of_floats(widened(queries), widened(base), params);
}

struct RangeResult {
  std::vector<int64_t> offsets;
  std::vector<int64_t> ids;
  std::vector<float> distances;
};

// All rows within the radius, by (canonical key, row).
RangeResult range_search_of_floats(const Matrix<float>& queries, const Matrix<float>& base, const RangeParams& params);

template <typename Q, typename X>
RangeResult range_search(const Matrix<Q>& queries, const Matrix<X>& base, const RangeParams& params) {
  return range_search_of_floats(widened(queries), widened(base), params);
}

}  // namespace kith::reference
