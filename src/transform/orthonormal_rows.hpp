// Rows made orthonormal by Householder's reflections, in float64. Row i of the result spans, with those before it, what
// the rows up to i span, and has a component of zero or more along row i; where rows depend on each other, the missing
// directions are filled up.
//
// Reflections are applied to every later row some at a time, while the row is in the cache.
// Cost: 4 rows^2 cols multiply-adds at most; another matrix of that size.
#pragma once

#include <kith/resources.hpp>

#include "transform/dense.hpp"

namespace kith {

// `matrix` has no more rows than columns and is used up.
Dense orthonormal_rows(Dense& matrix, const Resources& resources);

}  // namespace kith
