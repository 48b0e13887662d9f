// The recall of a k-NN graph of rows on a GPU, on 10,000 of them, evenly spread, searched exactly: a neighbour is found
// where it is no farther than the true last one. Distances are l2's.
#pragma once

#include <kith/kith.hpp>

#include "cuda_timing.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace kith {

class GraphTruth {
 public:
  GraphTruth(const MatrixView& x, int64_t k, const Resources& resources)
      : k_(k), count_(std::min<int64_t>(x.rows(), 10000)), apart_(x.rows() / count_) {
    const int64_t bytes = x.cols() * size_of(x.dtype());
    const DeviceBytes queries(static_cast<size_t>(count_ * bytes));
    check(cudaMemcpy2D(queries.as<std::byte>(), static_cast<size_t>(bytes), x.data(),
                       static_cast<size_t>(apart_ * bytes), static_cast<size_t>(bytes), static_cast<size_t>(count_),
                       cudaMemcpyDeviceToDevice));
    const Neighbors truth = knn({queries.as<std::byte>(), x.dtype(), {count_, x.cols(), x.cols()}, x.space()}, x,
                                {.k = k + 1, .check_finite = false}, resources);
    for (int64_t i = 0; i < count_; ++i) last_.push_back(truth.distances(i)[k]);  // the first is the row itself
  }

  double recall(const NeighborsView& graph) const { return recall(graph.distances, graph.k, graph.space); }
  double recall(const KnnGraph& graph) const { return recall(graph.distances(), graph.k(), graph.space()); }

 private:
  double recall(const float* distances, int64_t k, const MemorySpace& space) const {
    std::vector<float> found(static_cast<size_t>(count_ * k_));
    const auto kind = space.host_readable() ? cudaMemcpyHostToHost : cudaMemcpyDeviceToHost;
    check(cudaMemcpy2D(found.data(), static_cast<size_t>(k_ * 4), distances, static_cast<size_t>(apart_ * k * 4),
                       static_cast<size_t>(k_ * 4), static_cast<size_t>(count_), kind));
    int64_t hits = 0;
    for (int64_t i = 0; i < count_ * k_; ++i) {
      hits += found[static_cast<size_t>(i)] <= last_[static_cast<size_t>(i / k_)] ? 1 : 0;
    }
    return static_cast<double>(hits) / static_cast<double>(count_ * k_);
  }

  int64_t k_;
  int64_t count_;
  int64_t apart_;
  std::vector<float> last_;
};

}  // namespace kith
