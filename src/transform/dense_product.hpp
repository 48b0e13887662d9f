// Products of dense matrices in float64 or f32, on the CPU: C = A B, or C += A B.
//
// C is cut into tiles, one for each task; both operands of a tile are packed side by side in slabs of depth, and a
// block of C lies in registers. Where C has few tiles and A many columns (the sum of outer products of many rows), the
// columns are cut too and the parts added in their order. Each value is a sum in an order that the shapes alone fix, so
// the bits do not depend on threads or instruction sets.
//
// Cost: rows x cols x depth multiply-adds at close to the processor's rate; about 1 MB a thread.
#pragma once

#include <kith/resources.hpp>

#include "transform/dense.hpp"

namespace kith {

struct ProductTerms {
  double scale = 1;        // of the product
  bool adds = false;       // to what C holds
  bool symmetric = false;  // the product is: half of it is computed and mirrored
};

// C's rows are contiguous, and it shares no memory with A or B.
void multiply(DenseView<const double> a, DenseView<const double> b, DenseView<double> c, const ProductTerms& terms,
              const Resources& resources);
void multiply(DenseView<const float> a, DenseView<const float> b, DenseView<double> c, const ProductTerms& terms,
              const Resources& resources);
// The same in f32, where it may be less exact: twice as fast. Parts of long sums are added in float64.
void multiply(DenseView<const float> a, DenseView<const float> b, DenseView<float> c, const ProductTerms& terms,
              const Resources& resources);

}  // namespace kith
