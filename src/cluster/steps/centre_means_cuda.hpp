// centre_means.hpp on the GPU, with the same bytes: sixteen threads for each centre, a lane of the canonical sum each;
// or, where a centre has many columns, a block.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

struct MoveTask {
  const double* sums = nullptr;     // clusters x cols
  const double* weights = nullptr;  // clusters
  const double* counts = nullptr;   // of mini-batches: the weight that came before; else null
  const float* centres = nullptr;   // as they are
  float* moved = nullptr;           // as they will be, in the same place or another
  double* squared_moves = nullptr;  // of each centre; 0 where it stays
  int64_t clusters = 0;
  int64_t cols = 0;
  bool spherical = false;
};
void launch_move_centres(const MoveTask& task, cudaStream_t stream);

}  // namespace kith
