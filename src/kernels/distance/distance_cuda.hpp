// Keys of many queries against many rows, on the GPU.
#pragma once

#include <kith/metric.hpp>

#include "rows/device_rows.hpp"
#include "kernels/distance/distance_task.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// Computes the task with the fastest kernel; all give the same bits. Enqueues and returns. At most about a million
// queries and 2^31 - 1 rows per call.
void launch_distance(const DistanceTask& task, cudaStream_t stream);

// Ordered keys (core/ordered_key.hpp) to keys[query * key_stride + row].
inline void launch_distance(Metric metric, const DeviceRowsView& queries, const DeviceRowsView& rows, int64_t cols,
                            uint32_t* keys, int64_t key_stride, cudaStream_t stream) {
  launch_distance({queries, rows, cols, key_kind(metric), keys, key_stride}, stream);
}

// The kernels, and the tasks each supports. Only those for products and for few queries fill `first_bad`.
void launch_lane_distance(const DistanceTask& task, cudaStream_t stream);         // all but hamming
void launch_certain_distance(const DistanceTask& task,
                             cudaStream_t stream);  // products; compute capability 9.0 or later
void launch_few_columns_distance(const DistanceTask& task, cudaStream_t stream);  // all but hamming, up to 16 columns
void launch_bit_distance(const DistanceTask& task, cudaStream_t stream);          // hamming

void launch_few_queries_distance(const DistanceTask& task, cudaStream_t stream);  // one to four queries

inline constexpr int64_t kFewColumns = 16;
inline constexpr int kFewQueriesMost = 4;
bool suits_few_queries(const DistanceTask& task);

}  // namespace kith
