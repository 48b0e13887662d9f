// Views: pointers with a shape, a dtype and a memory space. They own nothing.
//
// Rows may be apart (row_stride >= cols, in elements); the columns of a row are contiguous. A view is checked once,
// when it is made: an impossible shape or a null pointer to a non-empty matrix is InvalidArgument.
//
// Vectors of f64 are narrowed to f32 by the calls that take vectors, in memory of their own: knn, range_search,
// pairwise_distances, graphs, k-means, quantizers, transforms and Index. Where the values of a column lie close
// together and far from 0, as times and places do, f32 would spend its bits on what they have in common. So one of the
// values is subtracted from all first, in f64, where the metric is one of differences (l2, sqeuclidean, l1, linf):
// distances do not change. The searched vectors alone tell what. A finite value beyond f32's range is InvalidArgument;
// where f32 cannot tell vectors apart well enough there is a log entry of LogLevel::precision. Other calls refuse f64.
#pragma once

#include <kith/dtype.hpp>
#include <kith/export.hpp>
#include <kith/memory_space.hpp>

#include <cstddef>
#include <cstdint>

namespace kith {

struct MatrixShape {
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t row_stride = 0;  // elements from one row to the next
};

class KITH_EXPORT MatrixView {
 public:
  MatrixView() = default;
  MatrixView(const void* data, DType dtype, MatrixShape shape, MemorySpace space = {});
  MatrixView(const float* data, int64_t rows, int64_t cols) : MatrixView(data, DType::f32, {rows, cols, cols}) {}
  MatrixView(const uint8_t* data, int64_t rows, int64_t cols) : MatrixView(data, DType::u8, {rows, cols, cols}) {}
  MatrixView(const double* data, int64_t rows, int64_t cols) : MatrixView(data, DType::f64, {rows, cols, cols}) {}

  const void* data() const { return data_; }
  int64_t rows() const { return shape_.rows; }
  int64_t cols() const { return shape_.cols; }
  int64_t row_stride() const { return shape_.row_stride; }
  DType dtype() const { return dtype_; }
  MemorySpace space() const { return space_; }
  bool empty() const { return rows() == 0 || cols() == 0; }

  const std::byte* row(int64_t i) const {
    return static_cast<const std::byte*>(data_) + i * row_stride() * size_of(dtype_);
  }
  // Rows first .. first + count - 1 of this matrix.
  MatrixView slice(int64_t first, int64_t count) const;

 private:
  const void* data_ = nullptr;
  MatrixShape shape_;
  DType dtype_ = DType::f32;
  MemorySpace space_;
};

class KITH_EXPORT MutableMatrixView : public MatrixView {
 public:
  MutableMatrixView() = default;
  MutableMatrixView(void* data, DType dtype, MatrixShape shape, MemorySpace space = {})
      : MatrixView(data, dtype, shape, space) {}
  MutableMatrixView(float* data, int64_t rows, int64_t cols) : MatrixView(data, rows, cols) {}
  MutableMatrixView(uint8_t* data, int64_t rows, int64_t cols) : MatrixView(data, rows, cols) {}
  MutableMatrixView(double* data, int64_t rows, int64_t cols) : MatrixView(data, rows, cols) {}

  void* data() const { return const_cast<void*>(MatrixView::data()); }
  std::byte* row(int64_t i) const { return const_cast<std::byte*>(MatrixView::row(i)); }
  MutableMatrixView slice(int64_t first, int64_t count) const;
};

// A contiguous run of ids, weights or norms.
template <typename T>
struct VectorView {
  T* data = nullptr;
  int64_t size = 0;
  MemorySpace space;

  T& operator[](int64_t i) const { return data[i]; }
};

}  // namespace kith
