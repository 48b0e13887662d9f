// Rows made orthonormal by Householder's reflections, in float64. Row i of the result spans, with those before it, what
// the rows up to i span, and has a component of zero or more along row i; where rows depend on each other, the missing
// directions are filled up.
//
// Reflections are applied to every later row some at a time, while the row is in the cache.
// Cost: 4 rows^2 cols multiply-adds at most; another matrix of that size.
#pragma once

#include <kith/resources.hpp>

#include "kernels/dense/dense.hpp"

namespace kith {

// `matrix` has no more rows than columns and is used up.
Dense orthonormal_rows(Dense& matrix, const Resources& resources);

// The orthonormal matrix nearest to a given one: R = U V' for M = U S V', which makes the sum of the products of their
// elements largest (the orthogonal Procrustes problem; Schoenemann, 1966).
//
// V comes from the eigenvectors of M' M. U is what orthonormal_rows() makes of (M V)', whose rows are orthogonal
// already but for rounding and come largest first: so it is orthonormal whatever M is, and directions that M lacks are
// filled up. Cost: an eigenproblem of the smaller side and two products.
//
// As many rows and columns as M; its rows are orthonormal, or its columns where there are more rows.
Dense polar_factor(DenseView<const double> m, const Resources& resources);
Footprint polar_factor_footprint(int64_t rows, int64_t cols, const Resources& resources);

}  // namespace kith
