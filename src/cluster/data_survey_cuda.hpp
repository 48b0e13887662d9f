// data_survey.hpp on the GPU, with the same bytes: a thread for each column of a block of kSumBlock rows, then one for
// each column that adds the blocks in order. Cost: one read of the rows.
#pragma once

#include "kernels/distance/distance_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

struct SurveyTask {
  DeviceRowsView rows;
  int64_t cols = 0;
  const float* origin = nullptr;   // cols
  double* blocks = nullptr;        // for each block of kSumBlock rows: the columns' sums, then their squares'
  double* sums = nullptr;          // 2 cols; added to
  uint32_t* not_finite = nullptr;  // set where a block's sum is not
};
void launch_survey(const SurveyTask& task, cudaStream_t stream);

// Lowers *first to the smallest row that holds a NaN or an infinity.
void launch_first_not_finite(const DeviceRowsView& rows, int64_t cols, uint32_t* first, cudaStream_t stream);

// rows x centres ordered keys to distances, or for spherical inner products.
void launch_distances(const uint32_t* ordered, int64_t count, bool spherical, float* out, cudaStream_t stream);

}  // namespace kith
