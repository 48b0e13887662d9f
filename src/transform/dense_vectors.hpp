// Steps on vectors of doubles that factorisations are made of, on the CPU. Sums are in 16 lanes and their tree
// (kernels/distance/canonical.hpp): the same bits with every instruction set.
#pragma once

#include <cstdint>

namespace kith {

double dot(const double* x, const double* y, int64_t count);

// y += scale x.
void add_scaled(double scale, const double* x, int64_t count, double* y);

// Of the rows `row` and `row + 1`: the first becomes cosine first - sine second, the second sine first + cosine second.
struct RowRotation {
  int64_t row = 0;
  double cosine = 1;
  double sine = 0;
};

// One after the other, on `cols` columns from `values` on, of rows that are `stride` apart.
void rotate_rows(const RowRotation* rotations, int64_t count, double* values, int64_t cols, int64_t stride);

}  // namespace kith
