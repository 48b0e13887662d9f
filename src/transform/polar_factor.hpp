// The orthonormal matrix nearest to a given one: R = U V' for M = U S V', which makes the sum of the products of their
// elements largest (the orthogonal Procrustes problem; Schoenemann, 1966).
//
// V comes from the eigenvectors of M' M. U is what orthonormal_rows() makes of (M V)', whose rows are orthogonal
// already but for rounding and come largest first: so it is orthonormal whatever M is, and directions that M lacks are
// filled up. Cost: an eigenproblem of the smaller side and two products.
#pragma once

#include <kith/resources.hpp>

#include "transform/dense.hpp"

namespace kith {

// As many rows and columns as M; its rows are orthonormal, or its columns where there are more rows.
Dense polar_factor(DenseView<const double> m, const Resources& resources);

}  // namespace kith
