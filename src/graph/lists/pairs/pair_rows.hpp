// A collection's rows on the CPU, ready to be compared in small sets of any of them (pair_scan.hpp).
//
// Rows anywhere in memory are gathered again and again, so what can be done once is: where the processor multiplies
// bytes floats are rounded to bytes here, a quarter of what would be read otherwise; bytes are compared as they are,
// with their sums at hand; all else is read from the rows themselves.
//
// Rows of chi_square in another order are there as features (chi_square_features.hpp), rounded to bytes: cells, where
// few pairs are near, are compared by them first.
//
// Memory: for floats a byte a value and 24 bytes a row, where they are rounded; for bytes 8 bytes a row. In another
// order the same once more, and for bytes a byte a value, for features three.
#pragma once

#include <kith/custom_metric.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/cpu_extensions.hpp"
#include "core/host_array.hpp"
#include "core/typed_row.hpp"
#include "graph/lists/pairs/chi_square_features.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/panels/byte_product.hpp"
#include "kernels/panels/panel_format.hpp"

#include <cstdint>
#include <vector>

namespace kith {

// f32, rounded, u8, i8 or bits.
PanelFormat choose_pair_format(KeyKind kind, DType dtype, int64_t cols, const CpuExtensions& cpu);
// The same of rows in another order.
PanelFormat choose_ordered_format(KeyKind kind, DType dtype, int64_t cols, const CpuExtensions& cpu);

constexpr int64_t product_columns(KeyKind kind, PanelFormat format, int64_t cols) {
  return kind == KeyKind::chi_square && format == PanelFormat::rounded ? kChiSquareFeatures * cols : cols;
}

class PairRows {
 public:
  // What is known of a rounded row, minus the origin, or of length 1 for cosine.
  struct Rounded {
    float scale;
    float residual;
    int32_t sum;
    double squared_norm;
  };

  // `x` must outlive it.
  PairRows(const MatrixView& x, KeyKind kind, const Resources& resources);
  // Rows that come later, some at a time: each is ready after prepare(), and may be another one after the next. The
  // origin follows from the first that are prepared from row 0 on.
  struct Later {};
  PairRows(const MatrixView& x, KeyKind kind, Later, const Resources& resources);
  void prepare(int64_t first, int64_t count, const Resources& resources);
  // To be compared by a user's metric, which must outlive it too: nothing is prepared.
  PairRows(const MatrixView& x, const custom::PanelMetric& metric)
      : x_(x), kind_(KeyKind::l1), format_(PanelFormat::f32), custom_(&metric) {}
  // The same rows in another order, so that those compared with each other lie near each other: the number of a row
  // here is a place, and order[place] its number there. Both must outlive it.
  PairRows(const PairRows& rows, const uint32_t* order, const Resources& resources);

  const MatrixView& view() const { return x_; }
  KeyKind kind() const { return kind_; }
  PanelFormat format() const { return format_; }
  // Whether features are compared, by which key, and how many columns they have.
  bool features() const { return kind_ == KeyKind::chi_square && format_ == PanelFormat::rounded; }
  KeyKind product_kind() const { return features() ? KeyKind::squared_l2 : kind_; }
  int64_t product_cols() const { return product_columns(kind_, format_, cols()); }
  // How much further apart features may lie than what they stand for.
  double features_error() const { return features_error_; }
  const std::vector<float>& origin() const { return origin_; }
  int64_t cols() const { return x_.cols(); }
  // Null where keys are those of `kind`.
  const custom::PanelMetric* custom() const { return custom_; }

  // The row of view().
  uint32_t row_at(int64_t place) const { return order_ == nullptr ? static_cast<uint32_t>(place) : order_[place]; }

  // Where rows are rounded: the bytes, rounded_words(product_cols()) * 4 of them, and the rest.
  const int8_t* rounded_bytes(int64_t row) const { return bytes_.data() + row * rounded_stride(); }
  const Rounded& rounded(int64_t row) const { return rounded_[row]; }
  // Where rows are bytes, or bits.
  const uint8_t* bytes(int64_t row) const {
    if (bytes_.size() == 0) return typed_row<uint8_t>(x_, row_at(row));
    return reinterpret_cast<const uint8_t*>(rounded_bytes(row));
  }
  const ByteSums& sums(int64_t row) const { return sums_[row]; }
  // Brings a row's values near, ahead of their use.
  void prefetch(int64_t row) const;
  // The same of view(), where values are rounded here.
  void prefetch_values(int64_t row) const;

 private:
  int64_t rounded_stride() const { return rounded_words(product_cols()) * 4; }
  void round(int64_t row, float* values);
  void choose_features_origin();

  const MatrixView x_;
  KeyKind kind_;
  PanelFormat format_;
  std::vector<float> origin_;
  double features_error_ = 0;
  const custom::PanelMetric* custom_ = nullptr;
  const uint32_t* order_ = nullptr;
  HostArray<int8_t> bytes_;  // rounded; or as they are, in the order asked for
  HostArray<Rounded> rounded_;
  HostArray<ByteSums> sums_;
};

}  // namespace kith
