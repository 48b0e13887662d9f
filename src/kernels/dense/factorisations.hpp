// What training takes apart dense matrices by, in float64: symmetric positive definite systems, eigenvectors,
// orthonormal rows. The bits do not depend on threads.
#pragma once

#include <kith/resources.hpp>

#include "kernels/dense/dense.hpp"

#include <vector>

namespace kith {

// Symmetric positive definite systems in float64, by Cholesky's factorisation in blocks: factors of a block's columns,
// then one product that takes them off all that is left (dense.hpp).
//
// Cost: n^3 / 3 multiply-adds at close to the processor's rate, and n^2 for each column of the right side.
//
// A X = B: `a`, both halves of it given, is used up, and `b` becomes X. `least`: no eigenvalue of `a` is below,
// and so no pivot but by rounding.
void solve_positive_definite(DenseView<double> a, DenseView<double> b, double least, const Resources& resources);

// Eigenvectors of a symmetric matrix in float64: Householder's reduction to three diagonals, then implicit QL steps
// (Golub and Van Loan, "Matrix Computations", chapter 8). The rotations of many steps are kept and then applied to
// columns of the eigenvectors that fit a cache, by all threads.
//
// Cost: 1.3 n^3 multiply-adds bound by memory, 4 n^3 in the cache; 2 n^2 doubles. n = 128: 4 ms, n = 1,024: 2 s.
struct SymmetricEigen {
  std::vector<double> values;  // largest first
  Dense vectors;               // one in each row, of length 1; the largest component is positive
};

// `matrix` is used up.
SymmetricEigen symmetric_eigen(Dense& matrix, const Resources& resources);

// Rows made orthonormal by Householder's reflections, in float64. Row i of the result spans, with those before it, what
// the rows up to i span, and has a component of zero or more along row i; where rows depend on each other, the missing
// directions are filled up.
//
// Reflections are applied to every later row some at a time, while the row is in the cache.
// Cost: 4 rows^2 cols multiply-adds at most; another matrix of that size.
//
// `matrix` has no more rows than columns and is used up.
Dense orthonormal_rows(Dense& matrix, const Resources& resources);

}  // namespace kith
