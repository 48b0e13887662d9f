// The nearest rows of one to four queries in one launch: every canonical key, and the k smallest of them by the block
// that is done last. Time is that of reading the rows once, and some microseconds for the last block.
#pragma once

#include <kith/neighbors.hpp>

#include "core/result_exit.hpp"
#include "kernels/distance/distance_task.hpp"
#include "kernels/rerank/few_nearest_plan.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// What the host looks at, in memory that it can read.
struct FewReport {
  uint32_t bad_query = 0;  // the first that is not finite, or 0xFFFFFFFF
  uint32_t bad_row = 0;    // likewise
};

inline constexpr int64_t kFewReportBytes = 256;  // before results, where both are in one block of memory

struct FewNearestTask {
  // Ordered keys go to its `keys`, which are memory for the search. Norms of queries are found here.
  DistanceTask distance;
  int64_t k = 0;                      // at most kFewNearestMostK
  int64_t first_row = 0;              // the number of row 0
  const uint32_t* numbers = nullptr;  // of the rows, ascending, where they are not first_row, first_row + 1, ...
  uint64_t* minima = nullptr;         // few_nearest_minima(...)
  uint32_t* arrived = nullptr;        // 0xFFFFFFFF before
  uint64_t* zeroed = nullptr;         // where not null, so many words become 0: for who comes after it in the stream
  int64_t zeroed_words = 0;
  FewReport* report = nullptr;        // where not null it is written,
  const uint32_t* bad_row = nullptr;  // with what is found here

  // Results: packed neighbours, queries x k, sorted and padded; or ids and distances, of which each query may have more
  // places than k.
  uint64_t* neighbors = nullptr;
  NeighborsView out = {};
  ResultExit exit = ResultExit(Metric::l2);
};

// Of a search that suits_few_nearest(). Enqueues and returns. At least one row and at most 2^31 - 1.
void launch_few_nearest(const FewNearestTask& task, int multiprocessors, cudaStream_t stream);

}  // namespace kith
