// What a block of a join keeps in shared memory behind the operands, and what its parts are given.
#pragma once

#include "graph/nn_descent/join_slots_cuda.hpp"
#include "graph/nn_descent/join_task_cuda.hpp"

#include <cstddef>
#include <cstdint>

namespace kith {

// A pair that may be the nearest of the sample whose slot it is.
struct LeftPair {
  uint16_t slot;
  uint16_t other;
};

inline constexpr int kLeftRoom = 512;  // pairs that products may leave; more, and all keys are computed

extern __shared__ __align__(128) std::byte join_shared[];  // operands, then the rest

class JoinMemory {
 public:
  __device__ JoinMemory(int base, int p) : base_(base), p_(p) {}

  // Of the samples.
  __device__ JoinFacts* facts() const { return at<JoinFacts>(0); }
  __device__ uint64_t* ends() const { return at<uint64_t>(16 * sample_places(p_)); }  // of their lists
  __device__ uint32_t* ids() const { return at<uint32_t>(24 * sample_places(p_)); }
  __device__ float* weights() const { return at<float>(28 * sample_places(p_)); }
  // Of the slots.
  __device__ uint64_t* nearest() const { return at<uint64_t>(slots_at()); }
  __device__ uint32_t* least() const { return at<uint32_t>(slots_at() + 48 * p_); }  // ordered values
  __device__ float* limits() const { return at<float>(slots_at() + 72 * p_); }
  __device__ uint32_t* hits() const { return at<uint32_t>(slots_at() + 96 * p_); }  // pairs left
  // Of the pairs that products leave.
  __device__ LeftPair* left() const { return at<LeftPair>(slots_at() + 120 * p_); }
  __device__ uint16_t* needed() const { return reinterpret_cast<uint16_t*>(left() + kLeftRoom); }

  static constexpr int64_t bytes(int64_t p) {
    return 32 * sample_places(static_cast<int>(p)) + 120 * p +
           kLeftRoom * static_cast<int64_t>(sizeof(LeftPair) + sizeof(uint16_t));
  }

 private:
  static_assert(sizeof(JoinFacts) == 16 && sizeof(LeftPair) == 4);
  __device__ int slots_at() const { return 32 * sample_places(p_); }
  // From the array itself, so that the compiler knows which memory it is.
  template <typename T>
  __device__ T* at(int bytes) const {
    return reinterpret_cast<T*>(join_shared + base_ + bytes);
  }

  int base_;  // behind the operands
  int p_;
};

struct JoinBlock {
  const JoinTask& task;
  JoinMemory memory;
  JoinSlots slots;
  int first_column;  // of the samples that NEW ones meet: all, or in a merge OLD ones

  __device__ const JoinCounts& counts() const { return slots.counts; }
};

}  // namespace kith
