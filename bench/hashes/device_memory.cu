#include "device_memory.hpp"

#include <kith/custom_metric.cuh>
#include <kith/error.hpp>

#include <cuda_runtime_api.h>

#include <algorithm>

namespace hashes {
namespace {

bool in_use = false;

void check(cudaError_t error) {
  if (error != cudaSuccess) throw kith::DeviceError(cudaGetErrorString(error));
}

}  // namespace

bool has_device() { return in_use; }
void use_device() {
  check(cudaSetDevice(0));
  in_use = true;
}

std::shared_ptr<void> device_memory(int64_t bytes) {
  void* data = nullptr;
  check(cudaMalloc(&data, static_cast<size_t>(std::max<int64_t>(1, bytes))));
  return {data, [](void* mine) { cudaFree(mine); }};
}

std::shared_ptr<void> copied_to_device(const void* data, int64_t bytes) {
  std::shared_ptr<void> there = device_memory(bytes);
  check(cudaMemcpy(there.get(), data, static_cast<size_t>(bytes), cudaMemcpyHostToDevice));
  return there;
}

void copy_to_host(const void* device, void* host, int64_t bytes) {
  check(cudaMemcpy(host, device, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost));
}

kith::Neighbors knn_by_on_device(const Canberra& metric, const kith::MatrixView& queries, const kith::MatrixView& base,
                                 const kith::CustomKnnParams& params, const kith::Resources& resources) {
  return kith::knn_by_cuda(metric, queries, base, params, resources);
}

kith::CustomGraph knn_graph_by_on_device(const Canberra& metric, const kith::MatrixView& x,
                                         const kith::CustomGraphParams& params, const kith::Resources& resources) {
  return kith::knn_graph_by_cuda(metric, x, params, resources);
}

}  // namespace hashes
