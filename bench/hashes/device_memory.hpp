// The memory of the GPU that the run is for, and what only nvcc can compile. Without a GPU there is none of it.
#pragma once

#include <kith/custom_metric.hpp>

#include "metrics.hpp"

#include <cstdint>
#include <memory>

namespace hashes {

// Whether --device cuda was given: vectors may then be put in GPU memory.
bool has_device();
// Throws Unsupported in a build without CUDA.
void use_device();

// Memory of the first GPU that frees itself.
std::shared_ptr<void> device_memory(int64_t bytes);
std::shared_ptr<void> copied_to_device(const void* data, int64_t bytes);
void copy_to_host(const void* device, void* host, int64_t bytes);

kith::Neighbors knn_by_on_device(const Canberra& metric, const kith::MatrixView& queries, const kith::MatrixView& base,
                                 const kith::CustomKnnParams& params, const kith::Resources& resources);
kith::CustomGraph knn_graph_by_on_device(const Canberra& metric, const kith::MatrixView& x,
                                         const kith::CustomGraphParams& params, const kith::Resources& resources);

}  // namespace hashes
