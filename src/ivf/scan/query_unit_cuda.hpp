// The scale of a query's distances, or of its keys for products, in the search of lists: what an estimate's unit is.
#pragma once

#include "cuda/device_core.hpp"
#include "ivf/segment/device_lists_cuda.hpp"

namespace kith {

// Every thread of a warp calls it for the same query.
__device__ inline double query_unit(const DeviceListsView& lists, const PreparedLists& prepared, const float* query) {
  const double scale = operand_scale(*prepared.largest);
  if (lists.kind != KeyKind::inner_product) return scale;
  float largest = 0;
  for (int col = static_cast<int>(threadIdx.x) % 32; col < lists.codec.format.cols; col += 32) {
    largest = fmaxf(largest, fabsf(query[col]));
  }
  largest = __uint_as_float(__reduce_max_sync(0xFFFFFFFFu, __float_as_uint(largest)));
  return scale * operand_scale(largest);
}

}  // namespace kith
