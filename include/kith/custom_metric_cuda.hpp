// The interface between kith/custom_metric.cuh and the library. It has no CUDA types, so that the two are compiled
// separately.
//
// The library copies vectors to the GPU, plans tiles under the memory limits, selects neighbours and keeps lists; the
// caller's code computes the distances of a tile, or of many small sets.
#pragma once

#include <kith/custom_metric.hpp>
#include <kith/dtype.hpp>
#include <kith/export.hpp>
#include <kith/neighbors.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include <cstdint>

namespace kith::custom {

// Vectors in a GPU's memory: row i is row list[i] - first_listed of the data; without a list it is row i.
struct DeviceRows {
  const void* data = nullptr;
  DType dtype = DType::f32;
  int64_t stride = 0;  // elements
  int64_t count = 0;
  const uint32_t* list = nullptr;
  uint32_t first_listed = 0;
};

// The distance of query q and row r goes to distances[q * stride + r].
struct DeviceTile {
  DeviceRows queries;
  DeviceRows rows;
  int64_t cols = 0;
  float* distances = nullptr;
  int64_t stride = 0;
};

struct TileMetric {
  const void* metric = nullptr;
  // Enqueues on the stream, a cudaStream_t, of the current device and returns.
  void (*distances)(const void* metric, const DeviceTile& tile, void* stream) = nullptr;
};

// Small sets of rows of one collection. Set s lists counts[s].rows row numbers from numbers[s * most_rows] on, of which
// the first counts[s].queries are queries. The distance of query q and row r > q goes to distances[(s * most_queries +
// q) * most_rows + r]; other entries may have any value.
struct SetCounts {
  int32_t queries = 0;
  int32_t rows = 0;
};
struct DeviceSets {
  DeviceRows rows;  // the collection, without a list
  int64_t cols = 0;
  const uint32_t* numbers = nullptr;
  const SetCounts* counts = nullptr;
  int64_t sets = 0;
  int64_t most_queries = 0;
  int64_t most_rows = 0;
  float* distances = nullptr;
};

struct GraphMetric {
  TileMetric search;
  // Enqueues on the stream, a cudaStream_t, of the current device and returns.
  void (*distances)(const void* metric, const DeviceSets& sets, void* stream) = nullptr;
};

// Queries and base in host memory or in that of the GPU that searches, which is the one that the resources name, or for
// `automatic` the one that holds the data, or the first. Unsupported in a build without CUDA.
KITH_EXPORT Neighbors knn_cuda(const TileMetric& metric, const MatrixView& queries, const MatrixView& base,
                               const CustomKnnParams& params, const Resources& resources);
// The same for a graph, which is returned in host memory.
KITH_EXPORT CustomGraph knn_graph_cuda(const GraphMetric& metric, const MatrixView& x, const CustomGraphParams& params,
                                       const Resources& resources);

}  // namespace kith::custom
