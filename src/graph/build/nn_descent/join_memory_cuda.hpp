// What a block of a join keeps in shared memory behind the operands, what its parts are given, and how it offers.
#pragma once

#include "graph/build/nn_descent/join_cuda.hpp"
#include "graph/lists/warp_lists_cuda.hpp"

#include <cstddef>
#include <cstdint>

namespace kith {

// A pair that may be the nearest of the sample whose slot it is.
struct LeftPair {
  uint16_t slot;
  uint16_t other;
};

extern __shared__ __align__(128) std::byte join_shared[];  // operands, then the rest

// The capacity for samples, slots, and pairs left by products; with more pairs, all keys are computed.
struct JoinRoom {
  int samples;
  int slots;
  int left;

  KITH_HOST_DEVICE constexpr int64_t bytes() const {
    return 32 * static_cast<int64_t>(samples) + 20 * static_cast<int64_t>(slots) +
           left * static_cast<int64_t>(sizeof(LeftPair) + sizeof(uint16_t));
  }
};

struct JoinMemory {
  int base;  // behind the operands
  JoinRoom room;

  __device__ JoinBounds* bounds() const { return at<JoinBounds>(0, 0); }  // of the samples, as all up to the weights
  __device__ uint64_t* ends() const { return at<uint64_t>(16, 0); }    // of their lists
  __device__ uint32_t* ids() const { return at<uint32_t>(24, 0); }
  __device__ float* weights() const { return at<float>(28, 0); }
  __device__ uint64_t* nearest() const { return at<uint64_t>(32, 0); }  // of the slots, as all up to the hits
  __device__ uint32_t* least() const { return at<uint32_t>(32, 8); }    // ordered values
  __device__ float* limits() const { return at<float>(32, 12); }
  __device__ uint32_t* hits() const { return at<uint32_t>(32, 16); }  // pairs left
  __device__ LeftPair* left() const { return at<LeftPair>(32, 20); }
  __device__ uint16_t* needed() const { return &left()[room.left].slot; }  // of the pairs left

 private:
  static_assert(sizeof(JoinBounds) == 16 && sizeof(LeftPair) == 4);
  // From the array itself, so that the compiler knows which memory it is.
  template <typename T>
  __device__ T* at(int bytes_per_sample, int bytes_per_slot) const {
    return reinterpret_cast<T*>(join_shared + base + bytes_per_sample * room.samples + bytes_per_slot * room.slots);
  }
};

struct JoinBlock {
  const JoinTask& task;
  const JoinMemory memory;
  JoinSlots slots;
  int first_column;  // of the samples that NEW ones meet: all, or in a merge OLD ones

  __device__ const JoinCounts& counts() const { return slots.counts; }
};

// How a join offers a neighbour to a list: it waits in the inbox of its row (join_rules.hpp), unless it is in the list,
// or another that is nearer waits in its place.

// atomicMin(), which knows no uint64_t.
__device__ inline void lower_to(uint64_t* place, uint64_t neighbor) {
  static_assert(sizeof(unsigned long long) == sizeof(uint64_t));
  atomicMin(reinterpret_cast<unsigned long long*>(place), static_cast<unsigned long long>(neighbor));
}

__device__ inline uint64_t* inbox_place(const JoinTask& task, uint32_t row, uint32_t other) {
  return task.inbox + row * task.slots + inbox_slot(task.salt, other, task.slots);
}

// What is not in the list for sure, and nearer than its end.
__device__ inline void offer_unknown(const JoinTask& task, uint32_t row, uint64_t end, uint64_t neighbor) {
  if (neighbor >= end) return;
  lower_to(inbox_place(task, row, row_of(neighbor)), neighbor);
}

__device__ inline void offer_to_list(const JoinTask& task, uint32_t row, uint64_t end, uint64_t neighbor) {
  if (neighbor >= end) return;
  uint64_t* const place = inbox_place(task, row, row_of(neighbor));
  const uint64_t waiting = __ldcg(place);
  const Known known = is_known(task.known, row, row_of(neighbor));
  if (known == Known::yes || (known == Known::unsure &&
                              list_holds(task.lists.entries + row * task.lists.length, task.lists.length, neighbor))) {
    return;
  }
  if (neighbor < waiting) lower_to(place, neighbor);
}

}  // namespace kith
