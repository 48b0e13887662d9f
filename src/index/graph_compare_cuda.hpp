// The second look at what walks on a GPU have found: canonical keys of the rows at the first places, until they are
// enough, and the first k by (distance, row). The same as GraphState does on the host.
#pragma once

#include <kith/neighbors.hpp>

#include "core/result_exit.hpp"
#include "graph/search/graph/walk_view.hpp"
#include "kernels/codes/code_format.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/rerank/few_results_cuda.hpp"
#include "rows/device_rows.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

struct GraphCompareTask {
  // The vectors as codes: of stored values, or others, one after the other in the order of rows.
  CodecView codec;
  KeyKind kind = KeyKind::l2;
  const uint8_t* vectors = nullptr;
  int64_t code_bytes = 0;  // of each
  PlaceRows rows;
  const uint64_t* kept_bits = nullptr;  // of rows; null: all are kept
  DeviceRowsView queries;               // of any dtype
  // What walks have found (WalkTaskCuda).
  const uint32_t* found = nullptr;
  // Their squared distances, as ordered numbers, where these are the vectors' own (WalkCoder::keys_are_exact): vectors
  // are not read then.
  const uint32_t* found_keys = nullptr;
  const uint32_t* found_count = nullptr;
  int64_t most = 0;
  int64_t fewest = 0;  // places: a query whose walk has found fewer has failed
  // What is wanted: k of `candidates` rows or more. A query that finds fewer than fewest_rows has failed too.
  int64_t candidates = 0;
  int64_t k = 0;
  int64_t fewest_rows = 0;
  ResultExit exit = ResultExit(Metric::l2);
  int64_t* ids = nullptr;  // queries x k, padded
  float* distances = nullptr;
  uint8_t* failed = nullptr;  // what becomes of the query: an AfterWalk
  // Where the host reads the first query that is not finite (0xFFFFFFFF: none), from `bad_query`, which the walks wrote
  // and which is reset.
  uint32_t* report = nullptr;
  uint32_t* bad_query = nullptr;
};

// Enqueues; the caller has asked suits_gpu_walk().
void launch_graph_compare(const GraphCompareTask& task, const InlineQueries& given, cudaStream_t stream);

}  // namespace kith
