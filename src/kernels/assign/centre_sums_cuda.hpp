// The sums of centre_sums.hpp on the GPU, with the same bytes.
//
// A stable sort by (block, centre) makes the rows of one centre in one block, a run, contiguous and ordered by row
// number. A warp adds up a run; if the rows' canonical keys are wanted too, sixteen threads do, or twice as many for
// wide rows, so that rows are read once for both (twice in long runs). Then a thread per column and centre adds its
// runs in the order of the blocks. Cost: one read of every row, about 12 bytes per row for sorting, and 16 per column
// and run, of which there is about one per 64 rows.
#pragma once

#include "kernels/distance/distance_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// Totals, and the partial sums of the unfinished block: clusters x cols sums, then a weight per centre.
struct DeviceSums {
  double* totals = nullptr;
  double* open = nullptr;
};

struct RunSums {
  uint32_t* keys[2] = {};  // one per row of the piece
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
  bool last = false;  // the last piece
  const int32_t* labels = nullptr;
  const float* weights = nullptr;  // or null
  RunSums runs;
  DeviceSums sums;
  // Where keys are wanted too, each row's squared distance to its label's centre: without weights, and of up to
  // kMostKeyCols columns.
  float* keys = nullptr;
  const float* centres = nullptr;
};
inline constexpr int64_t kMostKeyCols = 1536;

// The blocks of a piece.
struct SumBlocks {
  int64_t first = 0;  // row of the piece
  int64_t size = 0;   // rows of a block
  int64_t clusters = 0;
  int64_t count = 0;        // blocks overlapping the piece
  bool continues = false;   // the first block began in the previous piece
  bool stays_open = false;  // the last block continues in the next piece
};

SumBlocks sum_blocks_of(const SumsTask& task);

void launch_add_rows(const SumsTask& task, cudaStream_t stream);

// The same for few centres (suits_few_centres): nothing is sorted, and of the runs' memory the sums and weights are
// used.
void launch_add_few(const SumsTask& task, int multiprocessors, cudaStream_t stream);

// The bytes for sorting `rows` rows by `bits` bits of (block, centre) on the current device: at most
// centre_sort_bytes() of kmeans_workspace_cuda.hpp.
int64_t centre_sort_bytes_needed(int64_t rows, int bits);

// The sum of weight x key of each block of kSumBlock rows.
void launch_block_objectives(const float* keys, const float* weights, int64_t rows, double* blocks,
                             cudaStream_t stream);

// Counts the rows of each of `clusters` labels; the caller zeroes `counts`.
void launch_count_labels(const int32_t* labels, int64_t rows, int64_t clusters, uint32_t* counts, cudaStream_t stream);

}  // namespace kith
