// Symmetric positive definite systems in float64 on a GPU (factorisations.hpp), in blocks of 64 columns: the block's
// own factor, the rows below it, then one product that takes both off all that is left. Right sides are rows below the
// matrix, so that the factorisation is their forward substitution too. Every number is made by one thread in one order:
// the same bits on every run.
//
// Cost: n^3 / 3 multiply-adds, n / 64 times three launches, and two for each block of the way back.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// Row-major, (size + sides) x size: the lower triangle of A, then the right sides, a row each. They become X.
struct SystemOnDevice {
  double* values = nullptr;
  int64_t size = 0;
  int64_t sides = 0;
};

// Enqueues. `least`: no pivot is below, but by rounding.
void launch_solve_positive_definite(const SystemOnDevice& system, double least, cudaStream_t stream);

}  // namespace kith
