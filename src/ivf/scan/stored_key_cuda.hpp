// The canonical key of a query and a stored vector of a list.
#pragma once

#include "ivf/segment/device_lists_cuda.hpp"
#include "kernels/rerank/code_key_cuda.hpp"

#include <cstdint>

namespace kith {

__device__ inline CodeKeys keys_of(const DeviceListsView& lists) { return {lists.codec, lists.kind}; }

// Right in the first of the four threads that share the vector.
template <typename Reader>
__device__ inline float stored_key(const DeviceListsView& lists, const Reader& reader, const double* query,
                                   double inverse_q, int64_t code_bytes, uint32_t position, uint32_t list) {
  const float* const centre = lists.centres == nullptr || !lists.residual
                                  ? nullptr
                                  : lists.centres + static_cast<int64_t>(list) * lists.codec.format.cols;
  return code_key(keys_of(lists), reader, query, inverse_q, lists.codes + position * code_bytes, centre);
}

}  // namespace kith
