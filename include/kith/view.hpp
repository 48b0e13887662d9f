// Views: pointers with a shape, a dtype and a memory space. They do not own the memory.
//
// There may be gaps between rows (row_stride >= cols, in elements); the columns of a row are contiguous. The
// constructor checks a view: an impossible shape, or a null pointer to a non-empty matrix, is InvalidArgument.
//
// f64 vectors are narrowed to f32, in a copy, by knn, range_search, pairwise_distances, graphs, k-means, quantizers,
// transforms and Index; other calls refuse them. If the values of a column are close together but far from 0, such as
// timestamps and coordinates, f32 would lose their differences. For metrics of differences (l2, sqeuclidean, l1, linf)
// one value per column, the offset, is therefore subtracted from all vectors in f64 first, which does not change
// distances. It is chosen from the searched vectors only. A finite value out of f32's range is InvalidArgument; if f32
// still cannot tell vectors apart well enough, that is logged at LogLevel::precision.
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

// Contiguous ids, weights or norms.
template <typename T>
struct VectorView {
  T* data = nullptr;
  int64_t size = 0;
  MemorySpace space;

  T& operator[](int64_t i) const { return data[i]; }
};

}  // namespace kith
