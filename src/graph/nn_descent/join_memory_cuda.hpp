// What a block of a join keeps in shared memory behind the operands, and what its parts are given.
#pragma once

#include "graph/nn_descent/join_slots_cuda.hpp"
#include "graph/nn_descent/join_task_cuda.hpp"

#include <cstddef>
#include <cstdint>

namespace kith {

inline constexpr int kLeftRoom = 512;  // pairs that products may leave; more, and all keys are computed

// A pair that may be the nearest of the sample whose slot it is; with kForBoth beside the other's number it may be the
// other's nearest NEW one as well.
struct LeftPair {
  uint16_t slot;
  uint16_t other;
};
inline constexpr int kForBoth = 0x8000;

extern __shared__ __align__(128) std::byte join_shared[];  // operands, then the rest

struct JoinMemory {
  int base;  // behind the operands
  int p;

  __device__ JoinFacts* facts() const { return at<JoinFacts>(0); }  // of the samples, 4 p, as all up to the weights
  __device__ uint64_t* ends() const { return at<uint64_t>(64); }    // of their lists
  __device__ uint32_t* ids() const { return at<uint32_t>(96); }
  __device__ float* weights() const { return at<float>(112); }
  __device__ uint64_t* nearest() const { return at<uint64_t>(128); }  // of the slots, 6 p, as all up to the hits
  __device__ uint32_t* least() const { return at<uint32_t>(176); }    // ordered values
  __device__ float* limits() const { return at<float>(200); }
  __device__ uint32_t* hits() const { return at<uint32_t>(224); }  // pairs left
  __device__ LeftPair* left() const { return at<LeftPair>(kBytesPerSample); }
  __device__ uint16_t* needed() const { return reinterpret_cast<uint16_t*>(left() + kLeftRoom); }  // of the pairs left

  static constexpr int kBytesPerSample = 248;  // for each of p
  static constexpr int64_t bytes(int64_t p) {
    return kBytesPerSample * p + kLeftRoom * static_cast<int64_t>(sizeof(LeftPair) + sizeof(uint16_t));
  }

 private:
  static_assert(sizeof(JoinFacts) == 16 && sizeof(LeftPair) == 4);
  // From the array itself, so that the compiler knows which memory it is.
  template <typename T>
  __device__ T* at(int bytes_per_sample) const {
    return reinterpret_cast<T*>(join_shared + base + bytes_per_sample * p);
  }
};

struct JoinBlock {
  const JoinTask& task;
  const JoinMemory memory;
  JoinSlots slots;
  int first_column;  // of the samples that NEW ones meet: all, or in a merge OLD ones

  __device__ const JoinCounts& counts() const { return slots.counts; }
};

}  // namespace kith
