#include "transform/polar_factor.hpp"

#include "transform/dense_product.hpp"
#include "transform/orthonormal_rows.hpp"
#include "transform/symmetric_eigen.hpp"

namespace kith {

Dense polar_factor(DenseView<const double> m, const Resources& resources) {
  const bool tall = m.rows > m.cols;
  const DenseView<const double> wide = tall ? m.transposed() : m;  // rows <= cols
  Dense squares(wide.rows, wide.rows, "a polar factor", resources);
  multiply(wide, wide.transposed(), squares.view(), {.symmetric = true}, resources);
  const SymmetricEigen left = symmetric_eigen(squares, resources);  // one in each row
  Dense scaled(wide.rows, wide.cols, "a polar factor", resources);
  multiply(left.vectors.read(), wide, scaled.view(), {}, resources);
  const Dense right = orthonormal_rows(scaled, resources);
  Dense result(m.rows, m.cols, "a polar factor", resources);
  if (tall) {
    multiply(right.read().transposed(), left.vectors.read(), result.view(), {}, resources);
  } else {
    multiply(left.vectors.read().transposed(), right.read(), result.view(), {}, resources);
  }
  return result;
}

}  // namespace kith
