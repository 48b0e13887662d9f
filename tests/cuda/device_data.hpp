// Arrays, matrices and results in a GPU's memory, for tests.
#pragma once

#include <kith/neighbors.hpp>
#include <kith/view.hpp>

#include "cuda/error.hpp"
#include "cuda/parity.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace kith {

class DeviceBytes {
 public:
  explicit DeviceBytes(size_t bytes) : bytes_(bytes) {
    KITH_CUDA_CHECK(cudaMalloc(&data_, std::max<size_t>(bytes, 1)));
  }
  DeviceBytes(const void* from, size_t bytes) : DeviceBytes(bytes) {
    KITH_CUDA_CHECK(cudaMemcpy(data_, from, bytes, cudaMemcpyHostToDevice));
  }
  ~DeviceBytes() { (void)cudaFree(data_); }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  void* data() const { return data_; }
  void read(void* to) const { KITH_CUDA_CHECK(cudaMemcpy(to, data_, bytes_, cudaMemcpyDeviceToHost)); }

 private:
  void* data_ = nullptr;
  size_t bytes_;
};

class DeviceMatrix {
 public:
  explicit DeviceMatrix(const MatrixView& host)
      : array_(host.data(), static_cast<size_t>(host.rows() * host.row_stride() * size_of(host.dtype()))),
        view_(array_.data(), host.dtype(), {host.rows(), host.cols(), host.row_stride()}, MemorySpace::cuda(0)) {}
  explicit DeviceMatrix(const Vectors& vectors) : DeviceMatrix(vectors.view()) {}
  const MatrixView& view() const { return view_; }

 private:
  DeviceBytes array_;
  MatrixView view_;
};

struct DeviceResult {
  DeviceBytes ids;
  DeviceBytes distances;
  NeighborsView view;

  DeviceResult(int64_t queries, int64_t k)
      : ids(static_cast<size_t>(queries * k) * 8),
        distances(static_cast<size_t>(queries * k) * 4),
        view{static_cast<int64_t*>(ids.data()), static_cast<float*>(distances.data()), queries, k,
             MemorySpace::cuda(0)} {}

  Neighbors on_host() const {
    Neighbors result(view.queries, view.k, Resources());
    ids.read(result.view().ids);
    distances.read(result.view().distances);
    return result;
  }
};

}  // namespace kith
