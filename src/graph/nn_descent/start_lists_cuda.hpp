// The lists that NN-Descent begins with (start_lists.hpp), on a GPU.
#pragma once

#include <kith/knn_graph.hpp>
#include <kith/resources.hpp>

#include "cuda/device_context.hpp"
#include "graph/pairs/pair_key_rows.hpp"
#include "graph/working_lists_cuda.hpp"

#include <cstdint>
#include <memory>

namespace kith {

// Both wait, and keep the lists' ends right, which are right before. Beside the lists they take at most kStartBytes.
inline constexpr int64_t kStartBytes = int64_t{256} << 20;

void add_random_rows_cuda(const PairKeyRows& rows, int64_t boundary, uint64_t seed, const DeviceListsRef& lists,
                          const std::shared_ptr<const DeviceContext>& context, const Resources& resources);

// The graph lies on the host or on this device.
void add_graph_cuda(const PairKeyRows& rows, const KnnGraph& graph, int64_t first, int64_t most,
                    const DeviceListsRef& lists, const std::shared_ptr<const DeviceContext>& context,
                    const Resources& resources);

}  // namespace kith
