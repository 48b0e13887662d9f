// Dense matrices for training (rotations, principal axes, codebooks), with as many rows and columns as vectors have
// columns, or as there are codewords: products on the CPU, and the operations on vectors of doubles for
// factorisations.
//
// The result C of a product is cut into tiles, one per task; both operands of a tile are packed in slabs of depth, and
// a block of C is kept in registers. If C has few tiles and A many columns (sums of outer products of many rows), the
// columns are cut as well, and the parts added in order. The shapes alone determine the order of every sum, so the bits
// do not depend on threads or instruction sets. Cost: rows x cols x depth multiply-adds at nearly the processor's peak
// rate.
#pragma once

#include <kith/resources.hpp>

#include "core/footprint.hpp"
#include "core/host_array.hpp"
#include "core/host_device.hpp"
#include "core/memory_budget.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace kith {

// A matrix with any strides, possibly transposed.
template <typename T>
struct DenseView {
  T* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t row_step = 0;  // elements from one row to the next
  int64_t col_step = 1;

  KITH_HOST_DEVICE T& operator()(int64_t i, int64_t j) const { return data[i * row_step + j * col_step]; }
  KITH_HOST_DEVICE T* row(int64_t i) const { return data + i * row_step; }
  KITH_HOST_DEVICE DenseView transposed() const { return {data, cols, rows, col_step, row_step}; }
  DenseView block(int64_t first_row, int64_t first_col, int64_t row_count, int64_t col_count) const {
    return {data + first_row * row_step + first_col * col_step, row_count, col_count, row_step, col_step};
  }
  template <typename Read>
  requires(std::is_same_v<Read, const T> && !std::is_const_v<T>) operator DenseView<Read>()
      const {  // NOLINT(google-explicit-constructor): a view that reads
    return {data, rows, cols, row_step, col_step};
  }
};

// An owned one, row after row, zero at first.
class Dense {
 public:
  Dense() = default;
  Dense(int64_t rows, int64_t cols, std::string_view purpose, const Resources& resources)
      : values_(rows * cols, purpose, resources), rows_(rows), cols_(cols) {
    if (!resources.host_memory()->counts_only()) std::fill(values_.begin(), values_.end(), 0.0);
  }

  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  double* row(int64_t i) const { return values_.data() + i * cols_; }
  double& operator()(int64_t i, int64_t j) const { return values_[i * cols_ + j]; }
  DenseView<double> view() const { return {values_.data(), rows_, cols_, cols_, 1}; }
  DenseView<const double> read() const { return view(); }

 private:
  HostArray<double> values_;
  int64_t rows_ = 0;
  int64_t cols_ = 0;
};

struct ProductTerms {
  double scale = 1;        // of the product
  bool adds = false;       // to what C holds
  bool symmetric = false;  // the product is: half of it is computed and mirrored
  int64_t tasks = 16;      // long sums are cut into parts until there are this many tasks, or parts are as short as allowed
};

// How many parts the columns of A are cut into, for C of that size: each has divide_up(depth, parts) of them. What a
// GPU multiplies (dense_cuda.hpp) is cut in the same way.
int64_t product_parts(int64_t rows, int64_t cols, int64_t depth, const ProductTerms& terms);

// C = A B, or C += A B; counts what it takes where resources do nothing else. C's rows are contiguous, and it shares no
// memory with A or B.
void multiply(DenseView<const double> a, DenseView<const double> b, DenseView<double> c, const ProductTerms& terms,
              const Resources& resources);
void multiply(DenseView<const float> a, DenseView<const float> b, DenseView<double> c, const ProductTerms& terms,
              const Resources& resources);
// The same in f32, where it may be less exact: twice as fast. Parts of long sums are added in float64.
void multiply(DenseView<const float> a, DenseView<const float> b, DenseView<float> c, const ProductTerms& terms,
              const Resources& resources);

// What a product of that shape takes beside its matrices, summed in T.
template <typename T>
Footprint product_footprint(int64_t rows, int64_t cols, int64_t depth, const Resources& resources,
                            const ProductTerms& terms = {});

// Sums in 16 lanes and their tree (kernels/distance/canonical.hpp): the same bits with every instruction set.
double dot(const double* x, const double* y, int64_t count);

// y += scale x.
void add_scaled(double scale, const double* x, int64_t count, double* y);

// Rotates `row` and `row + 1`: the first becomes cosine first - sine second, the second sine first + cosine second.
struct RowRotation {
  int64_t row = 0;
  double cosine = 1;
  double sine = 0;
};

// One after the other, on `cols` columns from `values` on, of rows that are `stride` apart.
void rotate_rows(const RowRotation* rotations, int64_t count, double* values, int64_t cols, int64_t stride);

}  // namespace kith
