// Converts results for the caller, on the host and on the device alike: a packed neighbour (ordered_key.hpp) becomes
// the caller's id of the row and the distance in the metric's own unit. Padding becomes id -1 at the end.
#pragma once

#include <kith/metric.hpp>

#include "core/host_device.hpp"
#include "core/ordered_key.hpp"

#include <cstdint>

namespace kith {

struct ResultExit {
  bool larger_is_nearer = false;
  const uint32_t* numbers = nullptr;  // the ids of rows, where these are not 0, 1, 2, ...

  explicit ResultExit(Metric metric, const uint32_t* row_numbers = nullptr)
      : larger_is_nearer(kith::larger_is_nearer(metric)), numbers(row_numbers) {}

  KITH_HOST_DEVICE int64_t id(uint64_t neighbor) const {
    if (neighbor == kPadding) return -1;
    return numbers == nullptr ? row_of(neighbor) : numbers[row_of(neighbor)];
  }
  KITH_HOST_DEVICE float distance(uint64_t neighbor) const {
    const float key = key_of_ordered(neighbor == kPadding ? kInfiniteKey : ordered_of(neighbor));
    return larger_is_nearer ? 0.0f - key : key;  // never -0
  }

 private:
  static constexpr uint32_t kInfiniteKey = 0xFF800000u;  // ordered_key(+inf)
};

// Writes the ids and distances of `count` packed neighbours, all in host memory. (On a device:
// kernels/select/write_neighbors_cuda.hpp.)
inline void write_results(const ResultExit& exit, const uint64_t* packed, int64_t count, int64_t* ids,
                          float* distances) {
  for (int64_t i = 0; i < count; ++i) {
    ids[i] = exit.id(packed[i]);
    distances[i] = exit.distance(packed[i]);
  }
}

}  // namespace kith
