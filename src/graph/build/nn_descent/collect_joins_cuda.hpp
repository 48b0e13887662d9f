// Who meets in the joins of a round: the samples of each row, forward and reverse, nobody twice, NEW ones first, and
// the rows that have a join at all, by its size. A join then begins with what it compares.
//
// Memory: 16 bytes a row. Time: one read of the samples, a write of those that stay.
#pragma once

#include "graph/build/nn_descent/join_size.hpp"
#include "graph/build/nn_descent/join_task_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// Rows that have a join of each size, about in the order in which they were gone over: neighbours share samples.
struct DeviceJoins {
  uint32_t* rows = nullptr;    // kJoinSizes times as many as there are rows
  uint32_t* counts = nullptr;  // of each size; zero before
};

struct CollectTask {
  DeviceSamples samples;
  int64_t rows = 0;
  bool across = false;              // in a merge NEW ones meet OLD ones alone
  const uint32_t* order = nullptr;  // in which rows are gone over; null: as they lie
  bool sizes = false;               // joins are told apart by size; else all are large
  DeviceJoins joins;
  unsigned long long* pairs = nullptr;  // kCounters counters of what will be compared, zero before
};

// Samples are collected in their own place. Enqueues.
void launch_collect_joins(const CollectTask& task, cudaStream_t stream);

}  // namespace kith
