// The lists that NN-Descent begins with (start_lists.hpp), on a GPU.
#pragma once

#include <kith/resources.hpp>

#include "cuda/device_context.hpp"
#include "graph/lists/named_rows.hpp"
#include "graph/lists/pairs/pair_key_rows.hpp"
#include "graph/lists/working_lists_cuda.hpp"

#include <cstdint>
#include <memory>

namespace kith {

// Both wait, and keep the lists' ends right, which are right before. Beside the lists they take at most kStartBytes
// (start_rules.hpp), and kSetBytes more with a metric of the user's (pairs/custom_sets_cuda.hpp).

void add_random_rows_cuda(const PairKeyRows& rows, int64_t boundary, uint64_t seed, const DeviceListsRef& lists,
                          const std::shared_ptr<const DeviceContext>& context, const Resources& resources);

// The ids lie on the host or on this device.
void add_named_rows_cuda(const PairKeyRows& rows, const NamedRows& named, const DeviceListsRef& lists,
                         const std::shared_ptr<const DeviceContext>& context, const Resources& resources);

}  // namespace kith
