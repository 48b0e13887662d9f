// Keys of queries and vectors of lists: the canonical key of a stored vector, and the scale of estimates.
#pragma once

#include "core/ordered_key.hpp"
#include "cuda/device_core.hpp"
#include "ivf/segment/device_lists_cuda.hpp"
#include "kernels/rerank/candidate_key_cuda.hpp"

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
  const double* const inverse_norm = lists.inverse_norms == nullptr ? nullptr : lists.inverse_norms + position;
  return code_key(keys_of(lists), reader, query, inverse_q, lists.codes + position * code_bytes, centre, inverse_norm);
}

// A neighbour's key as a reach: its distance in the unit of products, ties included. For keys that are distances, but
// not those of unit vectors.
__device__ inline double reach_of(const ListKey& key, uint64_t neighbor, double scale) {
  const double found = key_of_ordered(ordered_of(neighbor));
  const double distance = key.kind == KeyKind::l2 ? found : sqrt(found);
  const double reach = distance * scale * (1 + 2 * kKeyLoss);
  return reach_in_range(key, reach, scale) ? reach_with_ties(key, reach, scale) : HUGE_VAL;
}

// The scale of a query's distances, or of its keys for products, in the search of lists: what an estimate's unit is.
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
