// CandidateDraws (kmeans_backend.hpp) on a GPU, with the same bytes: the steps of a round. They enqueue and return.
#pragma once

#include "cluster/draw/draw_tree.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// All in device memory.
struct DrawTask {
  DrawTree tree{1};
  float* nearest = nullptr;        // each row's squared distance to the nearest candidate
  int32_t* owner = nullptr;        // which one
  const float* weights = nullptr;  // or null
  double* sums = nullptr;          // the tree's
};

// No row has a candidate.
void launch_no_candidates(const DrawTask& task, cudaStream_t stream);
// Rows whose keys are less than what they have: labels are candidates from `first` on.
void launch_take_nearer(const DrawTask& task, const float* keys, const int32_t* labels, int64_t first,
                        cudaStream_t stream);
void launch_add_up(const DrawTask& task, cudaStream_t stream);
void launch_draw(const DrawTask& task, const double* shares, int64_t count, uint32_t* drawn, cudaStream_t stream);

}  // namespace kith
