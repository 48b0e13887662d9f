// Symmetric positive definite systems in float64, by Cholesky's factorisation in blocks: factors of a block's columns,
// then one product that takes them off all that is left (dense.hpp). The bits do not depend on threads.
//
// Cost: n^3 / 3 multiply-adds at close to the processor's rate, and n^2 for each column of the right side.
#pragma once

#include <kith/resources.hpp>

#include "kernels/dense/dense.hpp"

namespace kith {

// A X = B: `a`, both halves of it given, is used up, and `b` becomes X. `least`: no eigenvalue of `a` is below,
// and so no pivot but by rounding.
void solve_positive_definite(DenseView<double> a, DenseView<double> b, double least, const Resources& resources);

}  // namespace kith
