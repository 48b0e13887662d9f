// The result of a k-NN search: for each query k row ids, nearest first, and their distances in the metric's unit. With
// fewer than k rows, results are padded with id -1 and distance +inf, or -inf for inner_product.
#pragma once

#include <kith/host_buffer.hpp>
#include <kith/memory_space.hpp>

#include <cstdint>
#include <string_view>

namespace kith {

// Output arrays of the caller's: two row-major queries x k arrays, both in host memory or both in that of the CUDA
// device that searches.
struct NeighborsView {
  int64_t* ids = nullptr;
  float* distances = nullptr;
  int64_t queries = 0;
  int64_t k = 0;
  MemorySpace space = MemorySpace::host();
};

class Neighbors {
 public:
  Neighbors() = default;
  Neighbors(int64_t queries, int64_t k, const Resources& resources)
      : ids_(queries * k * static_cast<int64_t>(sizeof(int64_t)), "the neighbours' ids", resources),
        distances_(queries * k * static_cast<int64_t>(sizeof(float)), "the neighbours' distances", resources),
        queries_(queries),
        k_(k) {}

  int64_t queries() const { return queries_; }
  int64_t k() const { return k_; }
  const int64_t* ids(int64_t query = 0) const { return ids_.as<int64_t>() + query * k_; }
  const float* distances(int64_t query = 0) const { return distances_.as<float>() + query * k_; }
  NeighborsView view() { return {ids_.as<int64_t>(), distances_.as<float>(), queries_, k_, {}}; }

 private:
  HostBuffer ids_;
  HostBuffer distances_;
  int64_t queries_ = 0;
  int64_t k_ = 0;
};

}  // namespace kith
