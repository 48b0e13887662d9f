// The nearest rows of one to four queries in one launch: every canonical key, and the k smallest of them by the block
// that is done last. Time is that of reading the rows once, and some microseconds for the last block.
#pragma once

#include "cuda/pinned_page.hpp"
#include "kernels/distance/distance_task.hpp"
#include "kernels/rerank/few_nearest_plan.hpp"
#include "kernels/rerank/few_results_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

struct FewNearestTask {
  // Ordered keys go to its `keys`, which are memory for the search. Norms of queries are found here.
  DistanceTask distance;
  FewResults results;           // of at most kFewNearestMostK neighbours
  uint32_t* minima = nullptr;   // few_nearest_minima(...)
  PinnedPage::Words* words = nullptr;  // as a page has them; rows that are not finite are noted there where they matter
  float* copied = nullptr;             // optional: receives f32 queries passed with the launch
  uint64_t* zeroed = nullptr;   // optional: words to zero for the next kernel on the stream
  int64_t zeroed_words = 0;
  FewReport* report = nullptr;        // optional output
  const uint32_t* bad_row = nullptr;   // optional: result of an earlier check of the rows, copied to the report
};

// For a search that suits_few_nearest(). Enqueues and returns. At least one row and at most 2^31 - 1.
void launch_few_nearest(const FewNearestTask& task, const InlineQueries& queries, int multiprocessors,
                        cudaStream_t stream);

}  // namespace kith
