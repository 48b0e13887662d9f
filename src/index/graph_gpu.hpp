// A graph index in the memory of a GPU and its search there: walks (graph/search/walk/walk_cuda.hpp), then the
// comparison of what they find (graph_compare_cuda.hpp). The same bytes as on the CPU.
//
// No CUDA types; without CUDA every function but suits_gpu_walk() is Unsupported. Memory on the device: that of the
// graph on the host, the vectors or codes behind it, and for each query of a batch the query itself, 4 bytes per
// candidate and 12 per result.
#pragma once

#include <kith/metric.hpp>
#include <kith/neighbors.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "graph/search/graph/walk_arrays_gpu.hpp"
#include "graph/search/graph/walk_graph.hpp"
#include "graph/search/walk/walk_task_cuda.hpp"
#include "index/graph_plan.hpp"
#include "index/index_state.hpp"
#include "kernels/codes/code_format.hpp"
#include "quantize/codec.hpp"
#include "rows/kept_rows.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace kith {

// A graph without its tail, shared by all versions of an index that have this graph.
class WalkGraphOnGpu {
 public:
  // `made`: codes and lists that are there already, if any.
  WalkGraphOnGpu(std::shared_ptr<const WalkGraph> graph, int device, const Resources& resources,
                 const WalkArraysOnGpu& made = {});

  const WalkGraph& graph() const { return *source; }
  int64_t bytes() const;
  // The graph's part of a walk's task.
  WalkTaskCuda task() const;
  PlaceRows rows() const;
  WalkArraysOnGpu arrays(int device) const { return {device, codes, edges}; }

  const std::shared_ptr<const WalkGraph> source;
  const GpuBytes codes, edges, centres, entry_offsets, entries, place_offsets, place_rows, offsets, centre_norms;
};

class CodecOnDevice;

// The rows of a version: vectors or codes in the order of rows, and the codes of the tail.
class GraphRowsOnGpu {
 public:
  struct Contents {
    CodeFormat format;                   // of stored values, if there is no codec
    std::shared_ptr<const Codec> codec;  // null: plain vectors
    int64_t rows = 0;
    const void* tail = nullptr;
    int64_t tail_bytes = 0;
  };
  // copy(to) copies all vectors to device memory.
  template <typename Copy>
  GraphRowsOnGpu(const Contents& contents, int device, const Resources& resources, const Copy& copy)
      : format(contents.format),
        vectors(contents.rows * contents.format.bytes(), device, resources),
        tail(contents.tail, contents.tail_bytes, device, resources),
        codec(codec_of(contents, device, resources)) {
    copy(vectors.data());
  }

  int64_t bytes() const;

  const CodeFormat format;
  const GpuBytes vectors;
  const GpuBytes tail;
  const std::shared_ptr<const CodecOnDevice> codec;  // null: plain vectors
  SharedState exact;                                 // searches the vectors there; null: the store does

 private:
  static std::shared_ptr<const CodecOnDevice> codec_of(const Contents& contents, int device,
                                                       const Resources& resources);
};

// Whether a GPU can do such walks: they must go by codes, with a beam that fits in a block's memory.
bool suits_gpu_walk(const WalkCoder& coder, const GraphPlan& plan, int64_t places, int64_t degree, int64_t k);

struct GpuGraphSearch {
  const WalkGraphOnGpu& graph;
  const GraphRowsOnGpu& rows;
  const GraphPlan& plan;
  Metric metric;
  bool check_finite;
  const uint64_t* kept;   // bits of rows, on the host; null: all
  int64_t stored = 0;     // rows that have bits
  int64_t kept_rows = 0;  // of the index
  const uint32_t* hidden = nullptr;  // on the host, per query a place that its walk skips; null: none
};

// Queries of any dtype and results are on the host or on that device. Complete when it returns; returns the queries
// that must be searched again.
QueriesLeft search_graph_on_gpu(int device, const GpuGraphSearch& search, const MatrixView& queries,
                                const NeighborsView& out, const Resources& resources);

}  // namespace kith
