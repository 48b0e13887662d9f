// Arrays of numpy as most people pass them, read where numpy's binary interface says that their address and shape lie,
// and results made by numpy: a fraction of what the buffer protocol takes, and that is a fraction of DLPack; a search
// of few rows would notice. What is not so goes the way that takes every kind of array.
#pragma once

#include <kith/neighbors.hpp>
#include <kith/view.hpp>

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace kith::python {

namespace nb = nanobind;

// Vectors that the library reads in place, in an array that the caller holds. Made with the GIL held.
class PlainRows {
 public:
  explicit PlainRows(nb::handle array);

  // None where the array is not numpy's own, or has another dtype, layout or number of axes.
  const std::optional<MatrixView>& view() const { return view_; }
  // One vector, given as an array of one axis.
  bool single() const { return single_; }

 private:
  bool single_ = false;
  std::optional<MatrixView> view_;
};

// Up to so many bytes results are made by numpy: it uses them again from call to call, where Kith's own memory, which a
// limit counts and which says what there is too little of, comes anew from the system.
inline constexpr int64_t kMostNumpyBytes = 32 << 20;

// (ids, distances) of few neighbours: two fresh arrays of (queries, k), or of (k,) where `single`.
class PlainNeighbors {
 public:
  static bool suits(int64_t queries, int64_t k) { return k < 1 || queries <= kMostNumpyBytes / 12 / k; }

  PlainNeighbors(int64_t queries, int64_t k, bool single);

  NeighborsView view() const { return view_; }
  nb::object take() const { return nb::make_tuple(ids_, distances_); }

 private:
  nb::object ids_;
  nb::object distances_;
  NeighborsView view_;
};

// The caller's (ids, distances), a tuple of two arrays of numpy's that lie as PlainNeighbors' do, for such queries and
// apart from them; none where it is something else.
std::optional<NeighborsView> given_neighbors(nb::handle out, const MatrixView& queries, int64_t k, bool single);

// A fresh matrix of few f32.
class PlainMatrix {
 public:
  static bool suits(int64_t rows, int64_t cols) { return cols < 1 || rows <= kMostNumpyBytes / 4 / cols; }

  PlainMatrix(int64_t rows, int64_t cols);

  MutableMatrixView view() const { return view_; }
  nb::object take() const { return values_; }

 private:
  nb::object values_;
  MutableMatrixView view_;
};

// The value of a Python int or str; none if it is another object, or does not fit.
std::optional<int64_t> plain_number(nb::handle value);
std::optional<std::string_view> plain_text(nb::handle value);

}  // namespace kith::python
