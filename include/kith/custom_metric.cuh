// Exact search and k-NN graphs on a GPU by a metric of your own, compiled in your source file by nvcc (C++20).
//
// The metric is as in kith/custom_metric.hpp, with functions for the device, to which it is copied bytewise:
//
//   struct Canberra {
//     __host__ __device__ float init() const { return 0; }
//     __host__ __device__ float step(float sum, float q, float x) const {
//       const float size = fabsf(q) + fabsf(x);
//       return size == 0 ? sum : sum + fabsf(q - x) / size;
//     }
//     __host__ __device__ float finish(float sum) const { return sum; }
//   };
//   kith::Neighbors found = kith::knn_by_cuda(Canberra{}, queries, base, {.k = 10});
//
// Vectors are in host memory or in that of the GPU, results in host memory. Results are the same in every run and under
// any memory limit. They equal those of knn_by() on the CPU if both compilers do the same arithmetic: with -fmad=false
// for nvcc and -ffp-contract=off for the CPU. Cost: every pair of a query and a row. Memory: a tile of at most 64 MiB
// of distances, and the k best of each query.
//
// Graphs are built by NN-Descent, which needs a symmetric metric that says so, `static constexpr bool symmetric =
// true;`:
//
//   kith::CustomGraph graph = kith::knn_graph_by_cuda(Canberra{}, x, {.k = 15, .recall = 0.99});
//
// The graph is the same in every run, and equals the CPU's under the same conditions. Memory: at most 64 MiB of
// distances beside the rows, the lists and the working memory of nn_descent.
#pragma once

#include <kith/custom_metric_cuda.hpp>
#include <kith/error.hpp>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <string>
#include <type_traits>

namespace kith {
namespace custom {

// A block computes 32 x 64 distances, a thread 4 x 2; values come through shared memory, 16 columns at a time.
inline constexpr int kCustomThreads = 256;
inline constexpr int kCustomQueries = 32;
inline constexpr int kCustomRows = 64;
inline constexpr int kCustomCols = 16;
inline constexpr int kCustomThreadQueries = 4;
inline constexpr int kCustomThreadRows = 2;

__device__ inline float stored_value(const DeviceRows& rows, int64_t index) {
  switch (rows.dtype) {
    case DType::f16: return __half2float(static_cast<const __half*>(rows.data)[index]);
    case DType::bf16: return __bfloat162float(static_cast<const __nv_bfloat16*>(rows.data)[index]);
    case DType::u8: return static_cast<float>(static_cast<const uint8_t*>(rows.data)[index]);
    case DType::i8: return static_cast<float>(static_cast<const int8_t*>(rows.data)[index]);
    default: return static_cast<const float*>(rows.data)[index];
  }
}

// Columns first_col .. of kVectors vectors from `first` on, column by column; zero where there are none.
template <int kVectors, int kPitch>
__device__ void stage_values(const DeviceRows& rows, int64_t first, int64_t first_col, int64_t cols,
                             float (&stage)[kCustomCols][kPitch]) {
  for (int i = static_cast<int>(threadIdx.x); i < kVectors * kCustomCols; i += kCustomThreads) {
    const int column = i % kCustomCols;
    const int64_t vector = first + i / kCustomCols;
    float value = 0;
    if (vector < rows.count && first_col + column < cols) {
      const int64_t row = rows.list == nullptr ? vector : static_cast<int64_t>(rows.list[vector] - rows.first_listed);
      value = stored_value(rows, row * rows.stride + first_col + column);
    }
    stage[column][i / kCustomCols] = value;
  }
}

// All threads of a block call it.
template <typename M>
__device__ void distances_of_block(const M& metric, const DeviceTile& tile, int64_t first_query, int64_t first_row) {
  __shared__ float queries[kCustomCols][kCustomQueries + 1];
  __shared__ float rows[kCustomCols][kCustomRows + 1];
  const int my_row = static_cast<int>(threadIdx.x) % 32;
  const int my_query = static_cast<int>(threadIdx.x) / 32 * kCustomThreadQueries;
  float sums[kCustomThreadQueries][kCustomThreadRows];
  for (auto& row : sums) {
    for (float& sum : row) sum = metric.init();
  }
  for (int64_t first_col = 0; first_col < tile.cols; first_col += kCustomCols) {
    stage_values<kCustomQueries>(tile.queries, first_query, first_col, tile.cols, queries);
    stage_values<kCustomRows>(tile.rows, first_row, first_col, tile.cols, rows);
    __syncthreads();
    const int64_t left = tile.cols - first_col;
    const int count = left < kCustomCols ? static_cast<int>(left) : kCustomCols;
    for (int c = 0; c < count; ++c) {
#pragma unroll
      for (int q = 0; q < kCustomThreadQueries; ++q) {
#pragma unroll
        for (int r = 0; r < kCustomThreadRows; ++r) {
          sums[q][r] = metric.step(sums[q][r], queries[c][my_query + q], rows[c][my_row + 32 * r]);
        }
      }
    }
    __syncthreads();
  }
  for (int q = 0; q < kCustomThreadQueries; ++q) {
    for (int r = 0; r < kCustomThreadRows; ++r) {
      const int64_t query = first_query + my_query + q;
      const int64_t row = first_row + my_row + 32 * r;
      if (query < tile.queries.count && row < tile.rows.count) {
        tile.distances[query * tile.stride + row] = metric.finish(sums[q][r]);
      }
    }
  }
}

template <typename M>
__global__ void __launch_bounds__(kCustomThreads) tile_distances_kernel(M metric, DeviceTile tile) {
  distances_of_block(metric, tile, static_cast<int64_t>(blockIdx.y) * kCustomQueries,
                     static_cast<int64_t>(blockIdx.x) * kCustomRows);
}

// A block for each part of a set; those before the diagonal have nothing to do.
template <typename M>
__global__ void __launch_bounds__(kCustomThreads) set_distances_kernel(M metric, DeviceSets sets) {
  const int64_t set = blockIdx.x;
  const int64_t parts = (sets.most_rows + kCustomRows - 1) / kCustomRows;
  const int64_t first_query = blockIdx.y / parts * kCustomQueries;
  const int64_t first_row = blockIdx.y % parts * kCustomRows;
  const SetCounts counts = sets.counts[set];
  if (first_query >= counts.queries || first_row >= counts.rows || first_row + kCustomRows <= first_query) return;
  DeviceTile tile{sets.rows, sets.rows, sets.cols, sets.distances + set * sets.most_queries * sets.most_rows,
                  sets.most_rows};
  tile.queries.list = tile.rows.list = sets.numbers + set * sets.most_rows;
  tile.queries.count = counts.queries;
  tile.rows.count = counts.rows;
  distances_of_block(metric, tile, first_query, first_row);
}

inline void check_custom_launch() {
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) {
    throw DeviceError(std::string("the kernel of a custom metric cannot run: ") + cudaGetErrorString(error));
  }
}

template <typename M>
void tile_distances(const void* metric, const DeviceTile& tile, void* stream) {
  const dim3 grid(static_cast<unsigned>((tile.rows.count + kCustomRows - 1) / kCustomRows),
                  static_cast<unsigned>((tile.queries.count + kCustomQueries - 1) / kCustomQueries));
  tile_distances_kernel<<<grid, kCustomThreads, 0, static_cast<cudaStream_t>(stream)>>>(*static_cast<const M*>(metric),
                                                                                        tile);
  check_custom_launch();
}

template <typename M>
void set_distances(const void* metric, const DeviceSets& sets, void* stream) {
  const int64_t parts = (sets.most_rows + kCustomRows - 1) / kCustomRows *
                        ((sets.most_queries + kCustomQueries - 1) / kCustomQueries);
  const dim3 grid(static_cast<unsigned>(sets.sets), static_cast<unsigned>(parts));
  set_distances_kernel<<<grid, kCustomThreads, 0, static_cast<cudaStream_t>(stream)>>>(*static_cast<const M*>(metric),
                                                                                       sets);
  check_custom_launch();
}

}  // namespace custom

template <AccumulatedMetric M>
Neighbors knn_by_cuda(const M& metric, const MatrixView& queries, const MatrixView& base,
                      const CustomKnnParams& params = {}, const Resources& resources = Resources()) {
  static_assert(std::is_trivially_copyable_v<M>, "a metric is copied to the GPU as it is");
  return custom::knn_cuda({&metric, &custom::tile_distances<M>}, queries, base, params, resources);
}

// `x` in host memory or in that of the GPU. InvalidArgument where the metric is not symmetric after all, naming two
// rows.
template <SymmetricMetric M>
CustomGraph knn_graph_by_cuda(const M& metric, const MatrixView& x, const CustomGraphParams& params = {},
                              const Resources& resources = Resources()) {
  static_assert(std::is_trivially_copyable_v<M>, "a metric is copied to the GPU as it is");
  return custom::knn_graph_cuda({{&metric, &custom::tile_distances<M>}, &custom::set_distances<M>}, x, params, resources);
}

}  // namespace kith
