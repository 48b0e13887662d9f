// Builds a search graph over rows: codes, cells, places, candidates (knn_graph), pruning and linking, entries.
//
// Deterministic: the same rows, degree and seed give the same result for any number of threads, and on a GPU, which
// builds if the resources name one (walk_build_gpu.hpp).
//
// For inner_product, neighbours are those by l2 of x / |x|^2: rows that are the best answers to similar queries are
// neighbours there (Zhou et al., "Moebius Transformation for Fast Inner Product Search on Graph", 2019). With an extra
// column that makes all rows equally long instead, the neighbours of long rows are short ones, and walks end there: the
// recall is 0.62 instead of 0.99 (30,000 Gaussian rows of 24 columns, beam 64). Cells are clusters of directions.
//
// Four-bit codes are only used by walks: cells and lists are made with byte codes in any case; entries by walks.
//
// Time: that of knn_graph() for 2 x degree neighbours (at least 96), as much again for pruning, and a small walk for
// each row. Memory: 12 bytes for each of these candidates, besides the graph.
#pragma once

#include <kith/metric.hpp>
#include <kith/neighbors.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "graph/search/graph/walk_arrays_gpu.hpp"
#include "graph/search/graph/walk_graph.hpp"

#include <cstdint>
#include <memory>

namespace kith {

struct WalkGraphParams {
  Metric metric = Metric::l2;
  int64_t degree = 32;
  uint64_t seed = 0;
  WalkBits bits = WalkBits::eight;  // of the codes, if any
  // rows x degree row numbers, kNoEdge behind the last of each: lists that were made elsewhere and are taken as they
  // are, as far as places have room. Null: lists are made.
  const uint32_t* start = nullptr;
  // The nearest others of each row, in host memory, -1 where there are no more: whom lists are chosen from. Of no rows:
  // candidates are searched for.
  NeighborsView candidates = {};
};

// The number of candidates of each row that a build uses.
int64_t wanted_candidates(int64_t degree);

// The out.k nearest others of each place, with rows and results in any memory: by the method that is fastest on a CPU,
// so that they are the same on every device.
void find_candidates(const MatrixView& rows, Metric metric, uint64_t seed, const NeighborsView& out,
                     const Resources& resources);

// Builds from at least one row in host memory. When memory is only counted, the result only has sizes. `arrays`: are
// kept there if a GPU built the graph, has searches of it in the same form, and no memory limit is set.
std::shared_ptr<const WalkGraph> build_walk_graph(const MatrixView& rows, const WalkGraphParams& params,
                                                  const Resources& resources, WalkArraysOnGpu* arrays = nullptr);

}  // namespace kith
