// The small steps of k-means on a GPU, beside finding the nearest centres and adding up rows, with the bytes of the
// CPU. All enqueue and return.
#pragma once

#include "cluster/draw/draw_tree.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// Centres are moved as in centre_means.hpp: sixteen threads for each centre, a lane of the canonical sum each; or,
// where a centre has many columns, a block.
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

// The steps of a round of CandidateDraws (kmeans_backend.hpp). All in device memory.
struct DrawTask {
  DrawTree tree{1};
  float* nearest = nullptr;        // each row's squared distance to the nearest candidate
  int32_t* owner = nullptr;        // which one
  const float* weights = nullptr;  // or null
  double* sums = nullptr;          // the tree's
};

// Initialises: no row has a candidate yet.
void launch_no_candidates(const DrawTask& task, cudaStream_t stream);
// Updates rows whose keys are below their distance so far; labels are numbers of candidates less `first`.
void launch_take_nearer(const DrawTask& task, const float* keys, const int32_t* labels, int64_t first,
                        cudaStream_t stream);
void launch_add_up(const DrawTask& task, cudaStream_t stream);
void launch_draw(const DrawTask& task, const double* shares, int64_t count, uint32_t* drawn, cudaStream_t stream);

}  // namespace kith
