// The GPU warp that lane_array.hpp and warp_select.hpp are instantiated with: one lane's part of each operation.
#pragma once

#include "cuda/warp.hpp"
#include "kernels/select/select_entry.hpp"

#include <cstdint>

namespace kith {

__device__ inline WideEntry shuffle_entry_xor(const WideEntry& entry, int mask) {
  return {__shfl_xor_sync(kAllLanes, entry.payload, mask), __shfl_xor_sync(kAllLanes, entry.key, mask)};
}
__device__ inline uint64_t shuffle_entry_xor(uint64_t entry, int mask) {
  return __shfl_xor_sync(kAllLanes, entry, mask);
}
__device__ inline WideEntry shuffle_entry(const WideEntry& entry, int lane) {
  return {__shfl_sync(kAllLanes, entry.payload, lane), __shfl_sync(kAllLanes, entry.key, lane)};
}
__device__ inline uint64_t shuffle_entry(uint64_t entry, int lane) { return __shfl_sync(kAllLanes, entry, lane); }

template <typename EntryType>
struct DeviceWarp {
  using Entry = EntryType;
  using Value = EntryType;
  using Flag = bool;
  using Count = int;

  static __device__ Value all(const Entry& entry) { return entry; }
  static __device__ Count none() { return 0; }
  static __device__ Flag same(bool flag) { return flag; }
  static __device__ Flag less(const Value& a, const Value& b) { return a < b; }
  static __device__ Value pick(Flag flag, const Value& a, const Value& b) { return flag ? a : b; }
  static __device__ Flag differ(Flag a, Flag b) { return a != b; }
  static __device__ Flag both(Flag a, Flag b) { return a && b; }
  static __device__ Flag lane_has(int bit) { return (lane_index() & bit) != 0; }
  static __device__ Flag is(Count count, int n) { return count == n; }
  static __device__ Count plus(Count count, Flag flag) { return count + flag; }
  static __device__ bool any(Flag flag) { return __any_sync(kAllLanes, flag) != 0; }
  static __device__ Value shuffle_xor(const Value& value, int mask) { return shuffle_entry_xor(value, mask); }
  static __device__ Value broadcast(const Value& value, int lane) { return shuffle_entry(value, lane); }
};

}  // namespace kith
