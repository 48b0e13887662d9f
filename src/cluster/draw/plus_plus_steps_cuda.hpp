// The two steps of a round of k-means++ on a GPU: try some rows as the next centre, then take the best and draw the
// rows to try next. Both enqueue and return; rounds follow each other without the host.
//
// Sixteen threads share some rows, a lane of the canonical sum each, and keep the sums of these rows and all trials in
// registers; the next rows are on their way to shared memory meanwhile. Narrow rows have a thread each. Sums and draws
// have the order of draw_tree.hpp. Cost of a round: one read of the rows, 2 rows x columns x trials double operations,
// and some ten microseconds.
#pragma once

#include "cluster/draw/draw_tree.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

struct PlusPlusRound {
  const float* rows = nullptr;
  int64_t row_stride = 0;
  int64_t cols = 0;
  DrawTree tree{1};                // of the rows
  const float* weights = nullptr;  // or null
  bool whole_vectors = false;      // rows are copied by four values; launch_try_rows knows
  bool first = false;              // no centre has been chosen before
  int trials = 0;                  // in this round
  int next_trials = 0;             // in the next; 0 where this is the last
  float* distances = nullptr;      // trials x stride: each row's to the nearest centre, with each trial as one
  int64_t stride = 0;
  double* segments = nullptr;      // for each trial: sums of the first segments of all blocks, of the second, ...
  double* sums = nullptr;          // trials x tree.size
  const double* shares = nullptr;  // of the draws for the next round
  uint32_t* chosen = nullptr;      // the row that this round chooses
  PlusPlusState* state = nullptr;
};

void launch_try_rows(PlusPlusRound round, cudaStream_t stream);
void launch_take_best(const PlusPlusRound& round, cudaStream_t stream);

}  // namespace kith
