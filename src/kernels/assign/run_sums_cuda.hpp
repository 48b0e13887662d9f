// The second step of centre_sums_cuda.hpp: the sums of every run, the rows of one centre in one block, in the order of
// their numbers; and, read once for both, the rows' canonical keys to that centre.
#pragma once

#include "kernels/distance/distance_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// Totals, and what a block that has not ended has so far: clusters x cols sums, then a weight for each centre.
struct DeviceSums {
  double* totals = nullptr;
  double* open = nullptr;
};

struct RunSums {
  uint32_t* keys[2] = {};  // both as long as the piece
  uint32_t* rows[2] = {};
  void* sort = nullptr;
  int64_t sort_bytes = 0;
  uint32_t* starts = nullptr;  // runs + 1
  double* sums = nullptr;      // runs x cols
  double* weights = nullptr;   // runs
};

struct SumsTask {
  DeviceRowsView rows;
  int64_t cols = 0;
  int64_t clusters = 0;
  int64_t first = 0;  // the number of the piece's first row
  bool last = false;  // no more rows come
  const int32_t* labels = nullptr;
  const float* weights = nullptr;  // or null
  RunSums runs;
  DeviceSums sums;
  // Where keys are wanted too, each row's squared distance to its label's centre: without weights, and of up to
  // kMostKeyCols columns.
  float* keys = nullptr;
  const float* centres = nullptr;
};
inline constexpr int64_t kMostKeyCols = 784;

// What is the same for all rows of a piece.
struct SumBlocks {
  int64_t first = 0;  // row of the piece
  int64_t size = 0;   // of a block
  int64_t clusters = 0;
  int64_t count = 0;        // blocks that the piece touches
  bool continues = false;   // the first has begun in the piece before
  bool stays_open = false;  // the last goes on in the next
};

SumBlocks sum_blocks_of(const SumsTask& task);

// `order` has the rows sorted by run.
void launch_run_sums(const SumsTask& task, const SumBlocks& blocks, const uint32_t* order, cudaStream_t stream);
void launch_run_sums_and_keys(const SumsTask& task, const SumBlocks& blocks, const uint32_t* order,
                              cudaStream_t stream);

}  // namespace kith
