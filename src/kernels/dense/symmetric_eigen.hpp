// Eigenvectors of a symmetric matrix in float64: Householder's reduction to three diagonals, then implicit QL steps
// (Golub and Van Loan, "Matrix Computations", chapter 8). The rotations of many steps are kept and then applied to
// columns of the eigenvectors that fit a cache, by all threads.
//
// Cost: 1.3 n^3 multiply-adds bound by memory, 4 n^3 in the cache; 2 n^2 doubles. n = 128: 4 ms, n = 1,024: 2 s.
#pragma once

#include <kith/resources.hpp>

#include "kernels/dense/dense.hpp"

#include <vector>

namespace kith {

struct SymmetricEigen {
  std::vector<double> values;  // largest first
  Dense vectors;               // one in each row, of length 1; the largest component is positive
};

// `matrix` is used up.
SymmetricEigen symmetric_eigen(Dense& matrix, const Resources& resources);

}  // namespace kith
